/** The bar on top: where one is, who one is, and the way out. */
import { CameraIcon } from './icons.tsx'
import type { User } from './session.ts'

interface Props {
  readonly page: 'console' | 'monitoring'
  readonly user: User
  readonly onSignOut: () => void
}

export function Header({ page, user, onSignOut }: Props) {
  const link = (name: Props['page'], href: string, text: string) => (
    <a href={href} {...(page === name ? { 'aria-current': 'page' as const } : {})}>
      {text}
    </a>
  )
  return (
    <header class="top">
      <span class="brand">
        <CameraIcon />
        <strong>Camera</strong>
      </span>
      <nav aria-label="Pages">
        {/* By its file name: on the dashboard's port `/` is the dashboard. */}
        {link('console', page === 'console' ? '/' : '/index.html', 'Console')}
        {link('monitoring', '/monitoring', 'Status')}
        <a href="/api/docs">API</a>
      </nav>
      <span class="who">
        {user.username !== '' && (
          <span class="name">
            {user.username} <span class="muted">{user.role !== user.username ? user.role : ''}</span>
          </span>
        )}
        <button type="button" onClick={onSignOut}>
          Log out
        </button>
      </span>
    </header>
  )
}
