/** The catalogue: newest first, a page at a time, kept up to date by the events of the device. */
import { useEffect, useState } from 'preact/hooks'
import { call, failureText } from './api.ts'
import type { Device } from './device.ts'
import { formatPage } from './format.ts'
import { ConfirmDelete, Player } from './recording-dialogs.tsx'
import { RecordingRow } from './recording-row.tsx'
import type { Notify } from './toasts.tsx'
import type { Recording, RecordingPage } from './types.ts'

const PAGE = 20

interface Props {
  readonly device: Device
  readonly controlling: boolean
  readonly notify: Notify
}

export function Recordings({ device, controlling, notify }: Props) {
  const [offset, setOffset] = useState(0)
  const [reload, setReload] = useState(0)
  const [page, setPage] = useState<RecordingPage | null>(null)
  const [error, setError] = useState('')
  const [playing, setPlaying] = useState<Recording | null>(null)
  const [doomed, setDoomed] = useState<Recording | null>(null)

  // The versions say when to ask again
  useEffect(() => {
    let current = true
    call<RecordingPage>('GET', `/api/recordings?limit=${PAGE}&offset=${offset}`).then(
      (answer) => {
        if (!current) return
        setError('')
        setPage(answer)
        // The last one of the last page may be gone.
        if (answer.recordings.length === 0 && offset > 0) setOffset(Math.max(0, offset - PAGE))
      },
      (failure: unknown) => current && setError(failureText(failure)),
    )
    return () => {
      current = false
    }
  }, [offset, reload, device.catalogueVersion])

  const remove = async ({ id, filename }: Recording) => {
    setDoomed(null)
    try {
      await call('DELETE', `/api/recordings/${id}`)
      notify('success', `Deleted: ${filename}`)
    } catch (failure) {
      notify('error', failureText(failure))
    }
    setReload((count) => count + 1)
  }

  return (
    <section class="card recordings" aria-labelledby="recordings-title">
      <div class="card-head">
        <h2 id="recordings-title">Recordings</h2>
        {page && page.total > 0 && <span class="muted small">{formatPage(offset, page.recordings.length, page.total)}</span>}
      </div>
      {error !== '' && (
        <p class="form-error" role="alert">
          {error}{' '}
          <button type="button" onClick={() => setReload((count) => count + 1)}>
            Try again
          </button>
        </p>
      )}
      {page?.total === 0 && (
        <p class="empty muted">No recordings yet.{controlling && ' “Start recording” makes the first one.'}</p>
      )}
      <ul class="rows">
        {page?.recordings.map((recording) => (
          <RecordingRow
            key={recording.id}
            recording={recording}
            controlling={controlling}
            onPlay={() => setPlaying(recording)}
            onDelete={() => setDoomed(recording)}
          />
        ))}
      </ul>
      {page && page.total > PAGE && (
        <nav class="pager" aria-label="Pages of recordings">
          <button type="button" disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - PAGE))}>
            Newer
          </button>
          <button type="button" disabled={offset + PAGE >= page.total} onClick={() => setOffset(offset + PAGE)}>
            Older
          </button>
        </nav>
      )}
      {playing && <Player recording={playing} onClose={() => setPlaying(null)} />}
      {doomed && <ConfirmDelete recording={doomed} onClose={() => setDoomed(null)} onConfirm={() => void remove(doomed)} />}
    </section>
  )
}
