/** A modal dialog of the browser: it keeps the focus inside, closes with Escape, and gives the focus back. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

interface Props {
  readonly titleId: string
  readonly className: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

export function Dialog({ titleId, className, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const element = dialog.current
    const opener = document.activeElement
    element?.showModal()
    return () => {
      element?.close()
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
    }
  }, [])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click on the backdrop is for the pointer; the keyboard has Escape
    <dialog
      ref={dialog}
      class={className}
      aria-labelledby={titleId}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === dialog.current) onClose()
      }}
    >
      <div class="dialog-body">{children}</div>
    </dialog>
  )
}
