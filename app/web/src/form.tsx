/** Parts of the pages before the console: a card with a form, labelled fields, and an error that is read aloud. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { CameraIcon } from './icons.tsx'

interface CardProps {
  readonly title: string
  readonly intro: string
  readonly onSubmit?: () => Promise<void>
  readonly children?: ComponentChildren
}

export function GateCard({ title, intro, onSubmit, children }: CardProps) {
  return (
    <main class="gate">
      <form
        class="card gate-card"
        onSubmit={(event) => {
          event.preventDefault()
          void onSubmit?.()
        }}
      >
        <span class="mark">
          <CameraIcon />
        </span>
        <h1>{title}</h1>
        <p class="muted">{intro}</p>
        {children}
      </form>
    </main>
  )
}

interface FieldProps {
  readonly id: string
  readonly label: string
  readonly value: string
  readonly onValue: (value: string) => void
  readonly autoComplete: string
  readonly type?: 'text' | 'password'
  readonly autoFocus?: boolean
  readonly describedBy?: string
}

export function Field({ id, label, value, onValue, autoComplete, type = 'text', autoFocus = false, describedBy }: FieldProps) {
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (autoFocus) input.current?.focus()
  }, [autoFocus])
  const attributes = {
    ref: input,
    id,
    name: id,
    value,
    autoComplete,
    autoCapitalize: 'none',
    spellcheck: false,
    required: true,
    maxLength: 256,
    ...(describedBy === undefined ? {} : { 'aria-describedby': describedBy }),
    onInput: (event: InputEvent & { readonly currentTarget: HTMLInputElement }) => onValue(event.currentTarget.value),
  } as const
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {type === 'password' ? <input type="password" {...attributes} /> : <input type="text" {...attributes} />}
    </div>
  )
}

/** Always there, so that a screen reader notices when it gets words. */
export function FormError({ text }: { text: string }) {
  return (
    <p class="form-error" role="alert">
      {text}
    </p>
  )
}
