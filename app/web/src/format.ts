/** Numbers and times as people read them. */

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const
const LOCALE = 'en-GB'

/** Decimal units, as disks are sold: three significant digits at most. */
export function formatBytes(bytes: number): string {
  let value = Math.max(0, bytes)
  let unit = 0
  // 999.5 would be shown as 1000.
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000
    unit += 1
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2
  return `${trimZeros(value.toFixed(digits))} ${UNITS[unit]}`
}

function trimZeros(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}

/** `0:07`, `12:03`, `1:02:03`; parts of a second are dropped, as clocks do. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const two = (value: number) => String(value).padStart(2, '0')
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor(seconds / 60) % 60
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`
}

/** How long something runs already: the two largest units. */
export function formatUptime(seconds: number): string {
  const total = Math.max(0, Math.floor(seconds))
  const units: [number, string][] = [
    [Math.floor(total / 86_400), 'd'],
    [Math.floor(total / 3600) % 24, 'h'],
    [Math.floor(total / 60) % 60, 'min'],
    [total % 60, 's'],
  ]
  const first = units.findIndex(([value]) => value > 0)
  if (first < 0) return '0 s'
  return units
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ')
}

/** `Today, 14:03:09`, `Yesterday, …`, `3 Nov 2026, …`, in the browser's time zone. */
export function formatWhen(ms: number, now: number = Date.now()): string {
  const date = new Date(ms)
  return `${dayName(date, new Date(now))}, ${date.toLocaleTimeString(LOCALE)}`
}

function dayName(date: Date, now: Date): string {
  const yesterday = new Date(now)
  yesterday.setDate(now.getDate() - 1)
  if (date.toDateString() === now.toDateString()) return 'Today'
  if (date.toDateString() === yesterday.toDateString()) return 'Yesterday'
  return date.toLocaleDateString(LOCALE, { day: 'numeric', month: 'short', year: 'numeric' })
}

/** `1280x720` with the sign that it means. */
export function formatResolution(resolution: string): string {
  return resolution.replace('x', ' × ')
}

export function formatBitrate(kbps: number): string {
  return kbps >= 1000 ? `${trimZeros((kbps / 1000).toFixed(1))} Mbit/s` : `${Math.round(kbps)} kbit/s`
}

/** `1–20 of 57` */
export function formatPage(offset: number, shown: number, total: number): string {
  return shown === 0 ? `0 of ${total}` : `${offset + 1}–${offset + shown} of ${total}`
}
