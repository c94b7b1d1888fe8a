/** The cameras' settings in a backup: of those cameras that this device has in the same place. */
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { Conflict, InvalidRequest } from '../errors.ts'
import { AUDIO_CODECS, type CameraSettings } from './camera.ts'
import type { Cameras } from './cameras.ts'

const Percent = Type.Integer({ minimum: 0, maximum: 100 })
const Side = Type.Integer({ minimum: 16, maximum: 7680, multipleOf: 2 })
const closed = { additionalProperties: false }
const Entry = Type.Object(
  {
    id: Type.Integer({ minimum: 0, maximum: 255 }),
    spec: Type.String({ maxLength: 4096 }),
    mode_chosen: Type.Boolean(),
    settings: Type.Object(
      {
        width: Side,
        height: Side,
        fps: Type.Integer({ minimum: 1, maximum: 240 }),
        brightness: Percent,
        contrast: Percent,
        saturation: Percent,
        audio_codec: Type.Union(AUDIO_CODECS.map((codec) => Type.Literal(codec))),
        enabled: Type.Boolean(),
      },
      closed,
    ),
  },
  closed,
)
const Entries = Type.Array(Entry, { maxItems: 256 })

export type CameraEntry = Static<typeof Entry>

export class CameraTransfer {
  /** Key in the file. */
  readonly name = 'cameras'

  constructor(private readonly cameras: Cameras) {}

  collect(): CameraEntry[] {
    return this.cameras.list().map(({ id, spec, settings }) => ({
      id,
      spec: spec.text,
      mode_chosen: this.cameras.choseMode(id),
      settings: { ...settings },
    }))
  }

  prepare(value: unknown) {
    if (!Value.Check(Entries, value)) {
      const error = Value.Errors(Entries, value).First()
      const field = `backup.content.cameras${(error?.path ?? '').replaceAll('/', '.')}`
      throw new InvalidRequest(field, error?.message ?? 'Invalid')
    }
    const here = this.cameras.list()
    const fits = ({ id, spec }: CameraEntry) => here[id]?.spec.text === spec
    const entries = value.filter(fits)
    for (const { id, settings } of entries) this.cameras.checkChange(id, settings)
    const changed = entries.filter(({ id, settings, mode_chosen }) => {
      return !Value.Equal(here[id]?.settings, settings as CameraSettings) || this.cameras.choseMode(id) !== mode_chosen
    })
    return {
      changes: changed.map(({ id }) => `camera ${id}`),
      skipped: value.filter((entry) => !fits(entry)).map(({ id, spec }) => `camera ${id}: this device has no ${spec} there`),
      write: () => {
        const kept = here.every(({ id, settings }) => this.cameras.view(id).settings === settings)
        if (!kept) throw new Conflict('The settings of a camera were changed meanwhile', 'cameras')
        this.cameras.stage(changed)
      },
      act: () => this.cameras.reload(changed.map(({ id }) => id)),
    }
  }
}
