import t from 'tap'
import { PasswordHasher } from '../../../app/server/auth/passwords.ts'

t.test('a password costs twelve rounds of bcrypt', async (t) => {
  const hasher = new PasswordHasher()
  const hashed = await hasher.hash('Correct-Horse-9')
  t.match(hashed, /^\$2[aby]\$12\$/)
  t.ok(await hasher.verify('Correct-Horse-9', hashed))
  t.notOk(await hasher.verify('Correct-Horse-8', hashed))
})
