/** A slider that sends while it is moved, but not more often than the server and the camera can follow. */
import { useEffect, useRef, useState } from 'preact/hooks'

const SEND_EVERY_MS = 120
/** So long after the last move the device's own value is shown again, whatever it is. */
const SETTLE_MS = 1500

interface Props {
  readonly label: string
  readonly value: number
  readonly disabled: boolean
  readonly refusals: number
  readonly onValue: (value: number) => void
}

export function Slider({ label, value, disabled, refusals, onValue }: Props) {
  // While somebody drags, the broadcasts of where it was a moment ago must not pull it back.
  const [draft, setDraft] = useState<number | null>(null)
  const send = useThrottle(onValue)
  useEffect(() => {
    if (draft === null) return
    const timer = setTimeout(() => setDraft(null), SETTLE_MS)
    return () => clearTimeout(timer)
  }, [draft])
  // A refusal shows the device's value at once
  useEffect(() => setDraft(null), [refusals])

  const shown = draft ?? value
  const id = `slider-${label.toLowerCase()}`
  return (
    <div class="slider">
      <label for={id}>{label}</label>
      <output for={id}>{shown}</output>
      <input
        id={id}
        type="range"
        min="0"
        max="100"
        step="1"
        value={shown}
        disabled={disabled}
        style={{ '--filled': `${shown}%` }}
        onInput={(event) => {
          const next = event.currentTarget.valueAsNumber
          setDraft(next)
          send(next)
        }}
      />
    </div>
  )
}

/** The first value at once, then the newest one at most every `SEND_EVERY_MS`; the last is never lost. */
function useThrottle(send: (value: number) => void): (value: number) => void {
  const latest = useRef(send)
  latest.current = send
  const waiting = useRef<number | null>(null)
  const timer = useRef(0)
  useEffect(() => () => clearTimeout(timer.current), [])

  const flush = () => {
    timer.current = 0
    if (waiting.current === null) return
    latest.current(waiting.current)
    waiting.current = null
    timer.current = window.setTimeout(flush, SEND_EVERY_MS)
  }
  return (value) => {
    waiting.current = value
    if (timer.current === 0) flush()
  }
}
