/** The live picture in a box of fixed shape, so that nothing moves when it comes or goes. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { formatDuration } from './format.ts'
import { NoSignalIcon } from './icons.tsx'
import { type LiveState, StillLoop } from './still-loop.ts'
import { useNow } from './use-now.ts'

interface Props {
  readonly reason: string | null
  readonly recordingSince: number | null
  readonly testPicture: boolean
}

export function LivePicture({ reason, recordingSince, testPicture }: Props) {
  const image = useRef<HTMLImageElement>(null)
  const [state, setState] = useState<LiveState>('connecting')

  useEffect(() => {
    let shown = ''
    const show = async (picture: Blob) => {
      const element = image.current
      if (!element) return
      const before = shown
      shown = URL.createObjectURL(picture)
      element.src = shown
      try {
        await element.decode()
      } finally {
        URL.revokeObjectURL(before)
      }
    }
    const loop = new StillLoop({ show, state: setState })
    loop.start()
    return () => {
      loop.stop()
      URL.revokeObjectURL(shown)
    }
  }, [])

  return (
    <figure class={`live ${state}`}>
      <img ref={image} alt="Live view of the camera" hidden={state === 'connecting' || state === 'no-signal'} />
      <div class="live-message" role="status">
        <Message state={state} reason={reason} />
      </div>
      <div class="live-badges">
        {state === 'live' && <span class="badge live-badge">Live</span>}
        {testPicture && <span class="badge">Test picture</span>}
        {recordingSince !== null && <Elapsed since={recordingSince} />}
      </div>
    </figure>
  )
}

function Message({ state, reason }: { state: LiveState; reason: string | null }) {
  if (state === 'no-signal') {
    return (
      <>
        <NoSignalIcon />
        <strong>No signal</strong>
        <span>{reason ?? 'The camera delivers no picture.'} Waiting for it…</span>
      </>
    )
  }
  if (state === 'unreachable') {
    return (
      <>
        <NoSignalIcon />
        <strong>No connection</strong>
        <span>The camera does not answer. Trying again…</span>
      </>
    )
  }
  return state === 'connecting' ? <span class="spinner">Loading the picture…</span> : null
}

function Elapsed({ since }: { since: number }) {
  const now = useNow()
  return <span class="badge rec">REC {formatDuration(now - since)}</span>
}
