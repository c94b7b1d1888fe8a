/** The change of the factory password, which the server asks for before anything else. */
import { useState } from 'preact/hooks'
import { call, failureText } from './api.ts'
import { Field, FormError, GateCard } from './form.tsx'
import { PASSWORD_RULES } from './password-rules.ts'

interface Props {
  readonly username: string
  /** As typed at login a moment ago; empty after a reload. */
  readonly currentPassword: string
  readonly onChanged: () => void
  readonly onSignOut: () => void
}

export function PasswordPage({ username, currentPassword, onChanged, onSignOut }: Props) {
  const [current, setCurrent] = useState(currentPassword)
  const [next, setNext] = useState('')
  const [repeated, setRepeated] = useState('')
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)

  const submit = async () => {
    setError('')
    if (next !== repeated) {
      setError('The two new passwords are not the same')
      return
    }
    setBusy(true)
    try {
      const body = { current_password: current, new_password: next }
      await call('PUT', `/api/users/${encodeURIComponent(username)}/password`, { body, credentialsInBody: true })
      onChanged()
    } catch (failure) {
      setError(failureText(failure))
      setBusy(false)
    }
  }

  return (
    <GateCard
      title="Choose a new password"
      intro="The factory password is known to everybody. Choose your own before the camera can be used."
      onSubmit={submit}
    >
      {/* For password managers, which otherwise file the new password under no name. */}
      <input type="text" name="username" autoComplete="username" value={username} readOnly hidden />
      {currentPassword === '' && (
        <Field
          id="current-password"
          label="Current password"
          type="password"
          value={current}
          onValue={setCurrent}
          autoComplete="current-password"
          autoFocus
        />
      )}
      <Field
        id="new-password"
        label="New password"
        type="password"
        value={next}
        onValue={setNext}
        autoComplete="new-password"
        autoFocus={currentPassword !== ''}
        describedBy="password-rules"
      />
      <Rules password={next} />
      <Field
        id="repeat-password"
        label="Repeat the new password"
        type="password"
        value={repeated}
        onValue={setRepeated}
        autoComplete="new-password"
      />
      <FormError text={error} />
      <button type="submit" class="primary" disabled={busy || !current || !next || !repeated}>
        {busy ? 'Changing…' : 'Change password'}
      </button>
      <button type="button" class="quiet" onClick={onSignOut}>
        Back to sign in
      </button>
    </GateCard>
  )
}

function Rules({ password }: { password: string }) {
  return (
    <ul id="password-rules" class="rules">
      {PASSWORD_RULES.map(({ text, kept }) => (
        <li key={text} class={kept(password) ? 'kept' : ''}>
          {text}
          {kept(password) && <span class="hidden-text"> (done)</span>}
        </li>
      ))}
    </ul>
  )
}
