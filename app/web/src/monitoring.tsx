/** Entry of the status dashboard. */
import { render } from 'preact'
import { Dashboard } from './dashboard.tsx'
import { Gate } from './gate.tsx'

const root = document.getElementById('root')
if (root) render(<Gate>{(user, signOut) => <Dashboard user={user} onSignOut={signOut} />}</Gate>, root)
