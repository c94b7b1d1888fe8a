/** Short notices in a corner. They are read aloud, errors at once, and stay while the pointer or the focus is on them. */
import { useCallback, useRef, useState } from 'preact/hooks'
import { CloseIcon } from './icons.tsx'
import type { NoticeKind } from './notices.ts'

export type Notify = (kind: NoticeKind, text: string) => void

export interface Notice {
  readonly id: number
  readonly kind: NoticeKind
  readonly text: string
}

const SHOWN_MS = 6000
const ERROR_SHOWN_MS = 10_000
const MOST = 4

export function useNotices(): { notices: readonly Notice[]; notify: Notify; dismiss: (id: number) => void } {
  const [notices, setNotices] = useState<readonly Notice[]>([])
  const next = useRef(0)
  const dismiss = useCallback((id: number) => setNotices((all) => all.filter((notice) => notice.id !== id)), [])
  const notify = useCallback<Notify>(
    (kind, text) => {
      const id = ++next.current
      // The same words twice are one notice that lasts longer.
      setNotices((all) => [...all.filter((notice) => notice.text !== text), { id, kind, text }].slice(-MOST))
      const expire = () => {
        if (document.querySelector(`[data-notice="${id}"]:is(:hover, :focus-within)`)) setTimeout(expire, 1000)
        else dismiss(id)
      }
      setTimeout(expire, kind === 'error' ? ERROR_SHOWN_MS : SHOWN_MS)
    },
    [dismiss],
  )
  return { notices, notify, dismiss }
}

export function Toasts({ notices, dismiss }: { notices: readonly Notice[]; dismiss: (id: number) => void }) {
  const show = (wanted: (kind: NoticeKind) => boolean) =>
    notices
      .filter(({ kind }) => wanted(kind))
      .map(({ id, kind, text }) => (
        <div key={id} class={`toast ${kind}`} data-notice={id}>
          <span>{text}</span>
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <CloseIcon />
          </button>
        </div>
      ))
  return (
    <div class="toasts">
      <div aria-live="assertive">{show((kind) => kind === 'error')}</div>
      <div aria-live="polite">{show((kind) => kind !== 'error')}</div>
    </div>
  )
}
