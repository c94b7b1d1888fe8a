/**
 * Recordings that begin by themselves, because something moves or an alert is raised. One that somebody else started is never disturbed: an
 * event says what was noticed. None gets a tag, for tagged ones are kept for ever; the entry of one that began here says what triggered it.
 */
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Bus, ServerEvent } from '../bus.ts'
import type { Cameras } from '../cameras/index.ts'
import type { Component } from '../component.ts'
import { ApiError, errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Store, Table } from '../store/index.ts'
import type { Recorder } from './recorder.ts'
import {
  IDLE,
  nextTick,
  stepTrigger,
  TRIGGER_SOURCES,
  type TriggerInput,
  type TriggerSource,
  type TriggerState,
  type TriggerTimes,
} from './trigger-machine.ts'

const Rule = Type.Object(
  {
    enabled: Type.Boolean(),
    cameras: Type.Union(
      [Type.Array(Type.Integer({ minimum: 0, maximum: 255 }), { maxItems: 16, uniqueItems: true }), Type.Null()],
      {
        description: 'null: all',
      },
    ),
    pre_roll_seconds: Type.Integer({ minimum: 0, maximum: 600, description: 'as far as `recordingBufferSize` reaches' }),
    post_roll_seconds: Type.Integer({ minimum: 1, maximum: 3600 }),
    max_seconds: Type.Integer({ minimum: 5, maximum: 86_400, description: 'then another recording goes on while it lasts' }),
  },
  { additionalProperties: false },
)
export const TriggerRules = Type.Object({ motion: Rule, alert: Rule }, { additionalProperties: false })
export type TriggerRules = Static<typeof TriggerRules>

const OFF: Static<typeof Rule> = {
  enabled: false,
  cameras: null,
  pre_roll_seconds: 5,
  post_roll_seconds: 10,
  max_seconds: 300,
}
const KEY = 'recordingTriggers'
/** Of storage and data: another recording would make it worse. Of updates, restarts and resets: there is nothing to be seen. */
const OUR_ALERTS = /^(storage|retention|replication|database|data|update|restart|factory_reset)_/

interface Watch {
  state: TriggerState
  recording: number | null
  /** What the end of the helper has ended: the recorder may take it up again in a new file, which is ours as well. */
  lost: { readonly recording: number; readonly by: TriggerSource } | null
  timer: NodeJS.Timeout | undefined
  /** What one camera does happens one after the other. */
  turn: Promise<void>
}

export class TriggeredRecordings implements Component {
  private table: Table<string, unknown> | undefined
  private readonly watches = new Map<number, Watch>()
  private readonly onEvent = (event: ServerEvent) => this.hear(event)

  constructor(
    private readonly store: Store,
    private readonly recorder: Recorder,
    private readonly cameras: Cameras,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly now: () => number = () => performance.now(),
  ) {}

  start(): void {
    this.table = this.store.table('settings')
    this.bus.on('event', this.onEvent)
  }

  /** What runs is finished by the recorder. */
  async stop(): Promise<void> {
    this.bus.off('event', this.onEvent)
    for (const { timer } of this.watches.values()) clearTimeout(timer)
    await Promise.all([...this.watches.values()].map(({ turn }) => turn))
    this.table = undefined
  }

  get rules(): TriggerRules {
    const stored = this.table?.get(KEY)
    return Value.Check(TriggerRules, stored) ? stored : { motion: OFF, alert: OFF }
  }

  /** Holds for what is noticed from now on. */
  change(rules: TriggerRules): TriggerRules {
    for (const source of TRIGGER_SOURCES) for (const id of rules[source].cameras ?? []) this.cameras.view(id)
    this.store.transaction(() => this.table?.put(KEY, rules))
    this.bus.publish('config', 'recording_triggers_changed', { motion: rules.motion.enabled, alert: rules.alert.enabled })
    this.bus.emit('pre-roll-changed')
    return rules
  }

  /** Whether the past of this camera has to be kept. */
  needsPast(camera: number): boolean {
    const { rules } = this
    return TRIGGER_SOURCES.some((source) => applies(rules[source], camera) && rules[source].pre_roll_seconds > 0)
  }

  private hear({ category, type, data }: ServerEvent): void {
    const { camera } = data
    if (category === 'recording' && type === 'stopped' && typeof camera === 'number') {
      const watch = this.watches.get(camera)
      if (watch && watch.recording !== null && watch.recording === data.id) {
        const { state, recording } = watch
        const takenUp = data.reason === 'helper_lost' && state.phase === 'recording'
        watch.lost = takenUp ? { recording, by: state.by } : null
        this.inTurn(camera, { type: 'lost' })
      }
    }
    if (category === 'recording' && type === 'resumed' && typeof camera === 'number' && typeof data.id === 'number') {
      const watch = this.watches.get(camera)
      const by = watch?.lost?.recording === data.after ? watch?.lost?.by : undefined
      if (watch && by) this.inTurn(camera, { type: 'resumed', source: by }, data.id)
    }
    if (category === 'motion' && typeof camera === 'number') {
      if (/started|begin/.test(type)) this.notice('motion', camera, ['begin'])
      if (/stopped|ended/.test(type)) this.notice('motion', camera, ['end'])
    }
    if (category === 'alert' && !OUR_ALERTS.test(type)) {
      const concerned = typeof camera === 'number' ? [camera] : this.cameras.list().map(({ id }) => id)
      for (const id of concerned) this.notice('alert', id, ['begin', 'end'])
    }
  }

  /** An end is heard even when the rule was switched off meanwhile. */
  private notice(source: TriggerSource, camera: number, types: readonly ('begin' | 'end')[]): void {
    for (const type of types) {
      if (type === 'end' || applies(this.rules[source], camera)) this.inTurn(camera, { type, source })
    }
  }

  private inTurn(camera: number, input: TriggerInput, resumed?: number): void {
    let watch = this.watches.get(camera)
    if (!watch) {
      watch = { state: IDLE, recording: null, lost: null, timer: undefined, turn: Promise.resolve() }
      this.watches.set(camera, watch)
    }
    const own = watch
    own.turn = own.turn
      .then(() => this.step(camera, own, input, resumed))
      .catch((error) => this.log.error({ camera, error: errorText(error) }, 'trigger failed'))
  }

  private async step(camera: number, watch: Watch, input: TriggerInput, resumed: number | undefined): Promise<void> {
    const times = this.times()
    if (resumed !== undefined) Object.assign(watch, { recording: resumed, lost: null })
    if (input.type === 'begin' && watch.state.phase === 'idle' && this.recorder.isRecording(camera)) {
      this.tell(camera, input.source)
      return
    }
    const { state, actions } = stepTrigger(watch.state, input, this.now(), times)
    watch.state = state
    for (const action of actions) {
      if (action === 'stop') await this.end(camera, watch)
      if (action === 'start' && state.phase === 'recording') await this.begin(camera, watch, state.by)
    }
    this.plan(camera, watch, times)
  }

  private plan(camera: number, watch: Watch, times: Record<TriggerSource, TriggerTimes>): void {
    clearTimeout(watch.timer)
    const wait = nextTick(watch.state, times) - this.now()
    if (Number.isFinite(wait)) watch.timer = setTimeout(() => this.inTurn(camera, { type: 'tick' }), Math.max(0, Math.ceil(wait)))
  }

  private async begin(camera: number, watch: Watch, source: TriggerSource): Promise<void> {
    try {
      const preRollMs = this.rules[source].pre_roll_seconds * 1000
      const { row } = await this.recorder.startRecording(
        { camera, mode: 'video', preRollMs },
        { trigger: source, createdBy: null },
      )
      watch.recording = row.id
    } catch (error) {
      watch.state = IDLE
      watch.recording = null
      const code = error instanceof ApiError ? error.code : 'INTERNAL_ERROR'
      this.log.error({ camera, source, error: errorText(error) }, 'triggered recording not started')
      this.bus.publish('recording', 'trigger_failed', { camera, trigger: source, code })
    }
  }

  /** Only what was started here, and what still runs. */
  private async end(camera: number, watch: Watch): Promise<void> {
    const { recording } = watch
    watch.recording = null
    if (recording === null || this.recorder.status(camera).row?.id !== recording) return
    try {
      await this.recorder.stopRecording(camera)
    } catch (error) {
      // Paused by somebody: it is his now.
      this.log.warn({ camera, recording, error: errorText(error) }, 'triggered recording not stopped')
    }
  }

  private tell(camera: number, source: TriggerSource): void {
    const id = this.recorder.status(camera).row?.id ?? null
    this.bus.publish('recording', 'trigger_noticed', { id, camera, trigger: source })
  }

  private times(): Record<TriggerSource, TriggerTimes> {
    const { motion, alert } = this.rules
    const of = (rule: Static<typeof Rule>) => ({ postRollMs: rule.post_roll_seconds * 1000, maxMs: rule.max_seconds * 1000 })
    return { motion: of(motion), alert: of(alert) }
  }
}

function applies({ enabled, cameras }: Static<typeof Rule>, camera: number): boolean {
  return enabled && (cameras === null || cameras.includes(camera))
}
