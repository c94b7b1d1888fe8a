/** Entry of the console. */
import { render } from 'preact'
import { Console } from './app.tsx'
import { Gate } from './gate.tsx'

const root = document.getElementById('root')
if (root) render(<Gate>{(user, signOut) => <Console user={user} onSignOut={signOut} />}</Gate>, root)
