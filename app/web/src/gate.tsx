/** Stands before each page: asks who is there, signs in, has the factory password changed, and takes over again when the session ends. */
import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useState } from 'preact/hooks'
import { ApiFailure, call, failureText, listenToSession } from './api.ts'
import { GateCard } from './form.tsx'
import { LoginPage } from './login.tsx'
import { PasswordPage } from './password.tsx'
import { NOBODY, type SessionInfo, type User } from './session.ts'

type Stage =
  | { readonly name: 'probing' }
  | { readonly name: 'unreachable'; readonly message: string }
  | { readonly name: 'login'; readonly reason: string }
  | { readonly name: 'password'; readonly currentPassword: string }
  | { readonly name: 'in' }

const PROBE_AGAIN_MS = 3000

interface Props {
  readonly children: (user: User, signOut: () => void) => ComponentChildren
}

export function Gate({ children }: Props) {
  const [stage, setStage] = useState<Stage>({ name: 'probing' })
  const [user, setUser] = useState<User>(NOBODY)

  const leave = useCallback((reason: string) => {
    setUser(NOBODY)
    setStage({ name: 'login', reason })
  }, [])
  const signOut = useCallback(() => {
    // Whether or not the server can be told, this page shows nothing more.
    call('POST', '/api/auth/logout', { credentialsInBody: true }).catch(() => undefined)
    leave('You are signed out.')
  }, [leave])

  useEffect(() => {
    listenToSession({
      sessionEnded: () => {
        // At the first probe nobody was signed in: that is no news.
        setStage((now) => (now.name === 'in' ? { name: 'login', reason: 'Your session has ended. Please sign in again.' } : now))
        setUser(NOBODY)
      },
      passwordChangeRequired: () =>
        setStage((now) => (now.name === 'password' || now.name === 'login' ? now : { name: 'password', currentPassword: '' })),
    })
  }, [])

  useEffect(() => {
    if (stage.name !== 'probing') return
    call<SessionInfo>('GET', '/api/auth/session').then(
      ({ must_change_password: mustChange, ...who }) => {
        setUser(who)
        setStage(mustChange ? { name: 'password', currentPassword: '' } : { name: 'in' })
      },
      (error: unknown) => setStage((now) => (now.name === 'probing' ? stageAfter(error) : now)),
    )
  }, [stage.name])

  useEffect(() => {
    if (stage.name !== 'unreachable') return
    const timer = setTimeout(() => setStage({ name: 'probing' }), PROBE_AGAIN_MS)
    return () => clearTimeout(timer)
  }, [stage.name])

  if (stage.name === 'in') return <>{children(user, signOut)}</>
  if (stage.name === 'probing') return <main class="gate" aria-busy="true" />
  if (stage.name === 'unreachable') return <GateCard title="No connection" intro={`${stage.message} Trying again…`} />
  if (stage.name === 'password') {
    return (
      <PasswordPage
        username={user.username}
        currentPassword={stage.currentPassword}
        onSignOut={signOut}
        onChanged={() => setStage({ name: 'in' })}
      />
    )
  }
  return (
    <LoginPage
      reason={stage.reason}
      onLogin={(next, mustChangePassword, password) => {
        setUser(next)
        setStage(mustChangePassword ? { name: 'password', currentPassword: password } : { name: 'in' })
      }}
    />
  )
}

function stageAfter(error: unknown): Stage {
  if (error instanceof ApiFailure && error.status === 401) return { name: 'login', reason: '' }
  return { name: 'unreachable', message: failureText(error) }
}
