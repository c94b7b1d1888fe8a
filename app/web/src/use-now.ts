/** A clock for what counts seconds. Ticks oftener than it shows, so that no second is skipped. */
import { useEffect, useState } from 'preact/hooks'

const TICK_MS = 250

export function useNow(): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS)
    return () => clearInterval(timer)
  }, [])
  return now
}
