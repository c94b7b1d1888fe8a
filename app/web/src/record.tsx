/** Recording and stills: the buttons and what they do right now. */
import { useEffect, useState } from 'preact/hooks'
import type { Device } from './device.ts'
import { formatBytes, formatDuration } from './format.ts'
import { PauseIcon, PlayIcon, StillIcon } from './icons.tsx'
import { useNow } from './use-now.ts'

const ANSWER_MS = 8000

export function RecordBar({ device }: { device: Device }) {
  const { keys, online, recordingSince, freeBytes, refusals, set } = device
  const recording = keys.record === true
  const paused = keys.recordingState === 'paused'
  const [asked, ask] = useWaiting(keys.recordingState ?? '', refusals)
  const connected = device.camera?.connected === true

  return (
    <div class="record-bar">
      <button
        type="button"
        class={recording ? 'record active' : 'record'}
        disabled={!online || asked || paused || (!recording && !connected)}
        onClick={() => {
          ask()
          set({ record: !recording })
        }}
      >
        <span class="dot" aria-hidden="true" />
        {recording ? 'Stop recording' : 'Start recording'}
      </button>
      {recording && (
        <button
          type="button"
          disabled={!online || asked}
          onClick={() => {
            ask()
            set({ recordingState: paused ? 'recording' : 'paused' })
          }}
        >
          {paused ? <PlayIcon /> : <PauseIcon />}
          {paused ? 'Go on' : 'Pause'}
        </button>
      )}
      <button type="button" disabled={!online || !connected || keys.snap === true} onClick={() => set({ snap: true })}>
        <StillIcon />
        Take a still
      </button>
      <p class="recording-state">
        {recording ? (
          <Running since={recordingSince} paused={paused} file={keys.currentRecordingFile ?? ''} />
        ) : (
          <Free bytes={freeBytes} online={online} />
        )}
      </p>
    </div>
  )
}

function Running({ since, paused, file }: { since: number | null; paused: boolean; file: string }) {
  const now = useNow()
  return (
    <>
      <strong class="elapsed">{paused ? 'Paused' : since === null ? '0:00' : formatDuration(now - since)}</strong>{' '}
      <span class="filename muted">{file}</span>
    </>
  )
}

function Free({ bytes, online }: { bytes: number | null; online: boolean }) {
  if (!online) return <span class="muted">Connecting…</span>
  return bytes === null ? null : <span class="muted">{formatBytes(bytes)} free</span>
}

/** True from the click until the state has changed, the server has refused, or nobody has answered. */
function useWaiting(state: string, refusals: number): [boolean, () => void] {
  const [waiting, setWaiting] = useState(false)
  // A change of either is the answer
  useEffect(() => setWaiting(false), [state, refusals])
  useEffect(() => {
    if (!waiting) return
    const timer = setTimeout(() => setWaiting(false), ANSWER_MS)
    return () => clearTimeout(timer)
  }, [waiting])
  return [waiting, () => setWaiting(true)]
}
