/** The device at a glance, asked for every two seconds. */
import { type ComponentChildren, Fragment } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { call, failureText } from './api.ts'
import { pause } from './backoff.ts'
import { formatBytes, formatResolution, formatUptime } from './format.ts'
import { Header } from './header.tsx'
import { Meter } from './meter.tsx'
import { mayWatch, type User } from './session.ts'
import { StreamsTable } from './streams-table.tsx'
import type { CameraStatus, Health, Space, Streams, SystemInfo } from './types.ts'

const POLL_MS = 2000
const HEALTH_WORDS: Readonly<Record<string, string>> = { ok: 'good', healthy: 'good', warning: 'busy', degraded: 'busy' }

interface Snapshot {
  readonly info: SystemInfo
  readonly health: Health
  readonly cameras: CameraStatus
  /** Null where the role may not see them, or the media helper is away. */
  readonly streams: Streams | null
}

async function ask(watching: boolean): Promise<Snapshot> {
  const [info, health, cameras, streams] = await Promise.all([
    call<SystemInfo>('GET', '/api/status'),
    call<Health>('GET', '/health'),
    call<CameraStatus>('GET', '/api/camera/status'),
    watching ? call<Streams>('GET', '/api/streams').catch(() => null) : null,
  ])
  return { info, health, cameras, streams }
}

function useSnapshot(watching: boolean): { snapshot: Snapshot | null; error: string } {
  const [snapshot, setSnapshot] = useState<Snapshot | null>(null)
  const [error, setError] = useState('')
  useEffect(() => {
    const ending = new AbortController()
    const run = async () => {
      for (; !ending.signal.aborted; await pause(POLL_MS, ending.signal)) {
        if (document.hidden) continue
        try {
          const next = await ask(watching)
          if (ending.signal.aborted) return
          setSnapshot(next)
          setError('')
        } catch (failure) {
          setError(failureText(failure))
        }
      }
    }
    void run()
    return () => ending.abort()
  }, [watching])
  return { snapshot, error }
}

export function Dashboard({ user, onSignOut }: { user: User; onSignOut: () => void }) {
  const { snapshot, error } = useSnapshot(mayWatch(user))
  return (
    <>
      <Header page="monitoring" user={user} onSignOut={onSignOut} />
      <main class="dashboard">
        <h1 class="hidden-text">Status</h1>
        <p class="form-error" role="alert">
          {error}
        </p>
        {snapshot && <Tiles {...snapshot} />}
      </main>
    </>
  )
}

function Tiles({ info, health, cameras, streams }: Snapshot) {
  const { temperature, cpu_usage, memory, disk } = info.system
  return (
    <>
      <Tile title="Health">
        <p class="big">
          <State word={health.status} />
        </p>
        <dl class="facts">
          {Object.entries(health.checks).map(([name, check]) => (
            <Fragment key={name}>
              <dt>{name[0]?.toUpperCase() + name.slice(1)}</dt>
              <dd>
                <State word={check} />
              </dd>
            </Fragment>
          ))}
        </dl>
      </Tile>
      <Tile title="Load">
        <Meter label="CPU" percent={cpu_usage} text={cpu_usage === null ? null : `${cpu_usage.toFixed(0)} %`} />
        <Meter label="Memory" percent={percentOf(memory)} text={spaceText(memory)} />
        <Meter label="Disk" percent={percentOf(disk)} text={spaceText(disk)} />
      </Tile>
      <Tile title="System">
        <dl class="facts">
          <dt>Temperature</dt>
          <dd>{temperature === null ? <NotAvailable /> : `${temperature.toFixed(1)} °C`}</dd>
          <dt>Up for</dt>
          <dd>{formatUptime(info.uptime)}</dd>
          <dt>Version</dt>
          <dd>{info.version}</dd>
          <dt>Host name</dt>
          <dd>{info.network.hostname}</dd>
          <dt>Address</dt>
          <dd>{info.network.ip ?? <NotAvailable />}</dd>
        </dl>
      </Tile>
      <Tile title={cameras.cameras.length > 1 ? 'Cameras' : 'Camera'}>
        {cameras.cameras.map(({ id, connected, state, device, resolution, framerate }) => (
          <dl class="facts" key={id}>
            <dt>Camera {id}</dt>
            <dd>
              <span class={`state ${connected ? 'good' : 'bad'}`}>{state.replace('_', ' ')}</span>
            </dd>
            <dt>Device</dt>
            <dd>{device}</dd>
            <dt>Mode</dt>
            <dd>{resolution ? `${formatResolution(resolution)}, ${framerate} fps` : <NotAvailable />}</dd>
          </dl>
        ))}
        <dl class="facts">
          <dt>Recording</dt>
          <dd>{info.camera.recording ? 'yes' : 'no'}</dd>
        </dl>
      </Tile>
      <section class="card wide" aria-labelledby="streams-title">
        <h2 id="streams-title">Streams</h2>
        {streams ? <StreamsTable streams={streams} /> : <NotAvailable />}
      </section>
    </>
  )
}

function Tile({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  )
}

function State({ word }: { word: string }) {
  return <span class={`state ${HEALTH_WORDS[word] ?? 'bad'}`}>{word}</span>
}

function NotAvailable() {
  return <span class="muted">not available</span>
}

function percentOf(space: Space | null): number | null {
  return space && space.total > 0 ? (100 * space.used) / space.total : null
}

function spaceText(space: Space | null): string | null {
  return space && `${formatBytes(space.used)} of ${formatBytes(space.total)}`
}
