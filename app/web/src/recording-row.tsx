/** One recording and what can be done with it. */
import { formatBytes, formatDuration, formatResolution, formatWhen } from './format.ts'
import { DeleteIcon, DownloadIcon, PlayIcon } from './icons.tsx'
import type { Recording } from './types.ts'
import { useNow } from './use-now.ts'

interface Props {
  readonly recording: Recording
  readonly controlling: boolean
  readonly onPlay: () => void
  readonly onDelete: () => void
}

export function RecordingRow({ recording, controlling, onPlay, onDelete }: Props) {
  const { id, filename, timestampStartMs, durationMs, size, resolution, fps, state } = recording
  const when = formatWhen(timestampStartMs)
  return (
    <li class="row" data-recording={id} data-state={state}>
      <button
        type="button"
        class="play"
        aria-label={`Play the recording of ${when}`}
        disabled={state !== 'ready'}
        onClick={onPlay}
      >
        <PlayIcon />
      </button>
      <div class="what">
        <span>
          <strong title={filename}>{when}</strong>
          {state === 'recording' && <span class="state busy">Recording</span>}
          {state === 'defect' && <span class="state bad">Defect</span>}
        </span>
        <span class="muted small">
          {state === 'recording' ? (
            <Growing since={timestampStartMs} />
          ) : (
            <span class="duration">{formatDuration(durationMs)}</span>
          )}
          {state !== 'recording' && <span class="size">{formatBytes(size)}</span>}
          <span>{formatResolution(resolution)}</span>
          <span class="rate">{fps} fps</span>
        </span>
      </div>
      <div class="actions">
        {state !== 'recording' && (
          <a
            class="icon-button"
            href={`/api/recordings/${id}?download=true`}
            download={filename}
            aria-label={`Download the recording of ${when}`}
            title="Download"
          >
            <DownloadIcon />
          </a>
        )}
        {controlling && (
          <button
            type="button"
            class="icon-button"
            disabled={state === 'recording'}
            aria-label={`Delete the recording of ${when}`}
            title="Delete"
            onClick={onDelete}
          >
            <DeleteIcon />
          </button>
        )}
      </div>
    </li>
  )
}

/** By the device's clock, which may differ from the browser's: never shown below zero. */
function Growing({ since }: { since: number }) {
  const now = useNow()
  return <span>{formatDuration(now - since)}</span>
}
