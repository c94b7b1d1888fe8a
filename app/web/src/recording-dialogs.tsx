/** Playing a recording, and the question before one is deleted. */
import { useState } from 'preact/hooks'
import { Dialog } from './dialog.tsx'
import { formatBytes, formatDuration, formatWhen } from './format.ts'
import { CloseIcon } from './icons.tsx'
import type { Recording } from './types.ts'

interface PlayerProps {
  readonly recording: Recording
  readonly onClose: () => void
}

export function Player({ recording, onClose }: PlayerProps) {
  const [failed, setFailed] = useState(false)
  const [width = '16', height = '9'] = recording.resolution.split('x')
  return (
    <Dialog titleId="player-title" className="player" onClose={onClose}>
      <div class="card-head">
        <h2 id="player-title">{formatWhen(recording.timestampStartMs)}</h2>
        <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
          <CloseIcon />
        </button>
      </div>
      {/* biome-ignore lint/a11y/useMediaCaption: a camera's pictures have no words */}
      <video
        src={`/api/recordings/${recording.id}`}
        style={{ aspectRatio: `${width} / ${height}` }}
        controls
        autoPlay
        playsInline
        onError={() => setFailed(true)}
      />
      {failed && (
        <p class="form-error" role="alert">
          The browser cannot play this recording. It can still be downloaded.
        </p>
      )}
      <p class="muted small">{recording.filename}</p>
    </Dialog>
  )
}

interface ConfirmProps {
  readonly recording: Recording
  readonly onClose: () => void
  readonly onConfirm: () => void
}

export function ConfirmDelete({ recording, onClose, onConfirm }: ConfirmProps) {
  const { timestampStartMs, durationMs, size } = recording
  return (
    <Dialog titleId="delete-title" className="confirm" onClose={onClose}>
      <h2 id="delete-title">Delete this recording?</h2>
      <p>
        {formatWhen(timestampStartMs)} · {formatDuration(durationMs)} · {formatBytes(size)}
      </p>
      <p class="muted">It cannot be brought back.</p>
      <div class="buttons">
        <button type="button" onClick={onClose}>
          Keep
        </button>
        <button type="button" class="danger" onClick={onConfirm}>
          Delete
        </button>
      </div>
    </Dialog>
  )
}
