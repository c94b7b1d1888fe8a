/** A bar with its words; without a value it says so and stays empty. */
interface Props {
  readonly label: string
  readonly percent: number | null
  readonly text: string | null
}

const HIGH = 80
const CRITICAL = 95

export function Meter({ label, percent, text }: Props) {
  const value = Math.min(100, Math.max(0, percent ?? 0))
  const level = value >= CRITICAL ? 'critical' : value >= HIGH ? 'high' : ''
  return (
    <div class="meter">
      <span>{label}</span>
      <span class="muted">{text ?? 'not available'}</span>
      <div class="bar" aria-hidden="true">
        <div class={`fill ${level}`} style={{ width: `${value}%` }} />
      </div>
    </div>
  )
}
