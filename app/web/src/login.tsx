/** The way in: username and password, and a code where the account has a second factor, against a session cookie. */
import { useState } from 'preact/hooks'
import { ApiFailure, call, failureText } from './api.ts'
import { Field, FormError, GateCard } from './form.tsx'
import type { User } from './session.ts'
import type { Login, SystemInfo } from './types.ts'

interface Props {
  /** Why one stands here again, if there is a reason. */
  readonly reason: string
  readonly onLogin: (user: User, mustChangePassword: boolean, password: string) => void
}

export function LoginPage({ reason, onLogin }: Props) {
  const [username, setUsername] = useState('')
  const [password, setPassword] = useState('')
  /** Undefined until the server has asked for it. */
  const [otp, setOtp] = useState<string>()
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)

  const submit = async () => {
    setBusy(true)
    setError('')
    try {
      const { must_change_password, user } = await call<Login>('POST', '/api/login', {
        body: { username, password, ...(otp ? { otp } : {}) },
        credentialsInBody: true,
      })
      if (!must_change_password) await checkCookie()
      onLogin(user, must_change_password, password)
    } catch (failure) {
      if (failure instanceof ApiFailure && failure.code === 'OTP_REQUIRED' && otp === undefined) {
        setOtp('')
        return
      }
      setError(failureText(failure))
      setOtp(undefined)
      setPassword('')
      document.getElementById('password')?.focus()
    } finally {
      setBusy(false)
    }
  }

  return (
    <GateCard title="Sign in" intro={reason || 'Sign in to see your camera.'} onSubmit={submit}>
      <Field id="username" label="Username" value={username} onValue={setUsername} autoComplete="username" autoFocus />
      <Field
        id="password"
        label="Password"
        type="password"
        value={password}
        onValue={setPassword}
        autoComplete="current-password"
      />
      {otp !== undefined && (
        <Field
          id="otp"
          label="Code of your authenticator, or a recovery code"
          value={otp}
          onValue={setOtp}
          autoComplete="one-time-code"
          autoFocus
        />
      )}
      <FormError text={error} />
      <button type="submit" class="primary" disabled={busy || !username || !password || otp === ''}>
        {busy ? 'Signing in…' : 'Sign in'}
      </button>
    </GateCard>
  )
}

/** A browser that drops the cookie would bring the user back here without a word. */
async function checkCookie(): Promise<void> {
  try {
    await call<SystemInfo>('GET', '/api/status', { credentialsInBody: true })
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 401) throw error
    throw new ApiFailure(
      401,
      '',
      'The browser did not keep the session. Allow cookies for this address, or use HTTPS if you did before.',
    )
  }
}
