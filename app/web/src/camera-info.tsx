/** What the camera is and where its streams are. */
import { useEffect, useState } from 'preact/hooks'
import { call } from './api.ts'
import { copyText } from './clipboard.ts'
import { formatResolution } from './format.ts'
import { CopyIcon } from './icons.tsx'
import type { Notify } from './toasts.tsx'
import type { CameraEntry, Streams } from './types.ts'

const STATES: Readonly<Record<CameraEntry['state'], string>> = {
  streaming: 'Connected',
  starting: 'Starting',
  no_signal: 'No signal',
  stopped: 'Stopped',
}

export function CameraInfo({ camera, watching, notify }: { camera: CameraEntry | null; watching: boolean; notify: Notify }) {
  return (
    <section class="card" aria-labelledby="camera-title">
      <div class="card-head">
        <h2 id="camera-title">Camera {camera?.id ?? ''}</h2>
        {camera && <span class={`state ${camera.connected ? 'good' : 'bad'}`}>{STATES[camera.state]}</span>}
      </div>
      <dl class="facts">
        <dt>Device</dt>
        <dd>{camera ? deviceName(camera.device) : '…'}</dd>
        <dt>Resolution</dt>
        <dd>{camera?.resolution ? formatResolution(camera.resolution) : '–'}</dd>
        <dt>Frame rate</dt>
        <dd>{camera?.framerate ? `${camera.framerate} fps` : '–'}</dd>
        <dt>Format</dt>
        <dd>{camera?.format ?? '–'}</dd>
      </dl>
      {watching && <RtspAddresses notify={notify} connected={camera?.connected === true} />}
    </section>
  )
}

function deviceName(device: string): string {
  return device.startsWith('test:') ? 'Embedded test source' : device
}

function RtspAddresses({ notify, connected }: { notify: Notify; connected: boolean }) {
  const [streams, setStreams] = useState<Streams | null>(null)
  // When the camera comes back, so may its streams
  useEffect(() => {
    let current = true
    call<Streams>('GET', '/api/streams').then(
      (answer) => current && setStreams(answer),
      () => undefined,
    )
    return () => {
      current = false
    }
  }, [connected])
  if (!streams) return null
  const copy = async (address: string) => {
    if (await copyText(address)) notify('success', 'Address copied')
    else notify('error', 'The browser does not allow copying; mark the address by hand')
  }
  return (
    <div class="addresses">
      <h3>RTSP addresses</h3>
      {streams.streams.map(({ camera, name, path, resolution }) => {
        const address = `rtsp://${location.hostname}:${streams.rtsp_port}${path}`
        return (
          <div class="address" key={`${camera} ${name}`}>
            <code>{address}</code>
            <button
              type="button"
              class="icon-button"
              aria-label={`Copy the address of ${path.slice(1)}`}
              title={`Copy (${formatResolution(resolution)})`}
              onClick={() => void copy(address)}
            >
              <CopyIcon />
            </button>
          </div>
        )
      })}
    </div>
  )
}
