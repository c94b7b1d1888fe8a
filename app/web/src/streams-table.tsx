/** Streams with their load, and who watches them. */
import { formatBitrate, formatBytes, formatResolution, formatUptime } from './format.ts'
import type { Streams } from './types.ts'

export function StreamsTable({ streams: { encoder, streams } }: { streams: Streams }) {
  const clients = streams.flatMap((stream) => stream.clients.map((client) => ({ ...client, path: stream.path })))
  return (
    <>
      <p class="muted small">Encoder: {encoder ?? 'not available'}</p>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>Stream</th>
              <th>Mode</th>
              <th>State</th>
              <th class="number">Bitrate</th>
              <th class="number">Clients</th>
              <th class="number">Dropped</th>
            </tr>
          </thead>
          <tbody>
            {streams.map(({ path, resolution, fps, active, bitrate_kbps, clients: own, frames_dropped }) => (
              <tr key={path}>
                <td>{path}</td>
                <td>
                  {formatResolution(resolution)}, {fps} fps
                </td>
                <td>{active ? 'active' : 'idle'}</td>
                <td class="number">{bitrate_kbps === null ? '–' : formatBitrate(bitrate_kbps)}</td>
                <td class="number">{own.length}</td>
                <td class="number">{frames_dropped}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {clients.length === 0 ? (
        <p class="muted small">Nobody is connected over RTSP.</p>
      ) : (
        <ul class="clients">
          {clients.map(({ id, address, user, transport, connected_ms, bytes, path }) => (
            <li key={id}>
              <strong>{address}</strong> {user ?? 'not signed in'} · {path} · {transport?.toUpperCase() ?? '–'} ·{' '}
              {formatUptime(connected_ms / 1000)} · {formatBytes(bytes)}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
