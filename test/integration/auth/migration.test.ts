import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { hash } from '@node-rs/bcrypt'
import t from 'tap'
import { seal } from '../../../app/server/auth/sealed.ts'
import { loadOrCreateKey } from '../../../app/server/platform/index.ts'
import { MIGRATIONS, Store } from '../../../app/server/store/index.ts'
import { scratchFolder } from '../../support/scratch.ts'
import { log, open, PASSWORD } from './harness.ts'

t.test('accounts of schema 1 come along; the SHA-256 secret follows with the next login', async (t) => {
  const folder = scratchFolder(t, 'auth')
  const digest = (algorithm: string) => createHash(algorithm).update(`admin:camera:${PASSWORD}`).digest('hex')
  const old = new Store(join(folder, 'db'), log, MIGRATIONS.slice(0, 1))
  await old.start()
  const written = {
    username: 'admin',
    role: 'admin',
    email: '',
    password_hash: await hash(PASSWORD, 4),
    previous_hashes: [],
    must_change_password: false,
    protocols: ['rtsp'],
    sealed_ha1: seal(loadOrCreateKey(join(folder, 'keys/seal.key'), 32), digest('md5'), 'admin'),
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
  }
  old.table('users').put('admin', written)
  old.table('users').put('fresh', { ...written, username: 'fresh', role: 'viewer', sealed_ha1: null })
  await old.stop()

  const { auth, store, login } = await open(t, { folder })
  t.equal(store.schemaVersion, MIGRATIONS.at(-1)?.version)
  t.match(auth.users.get('fresh'), { enabled: true, cameras: null, two_factor: null, sealed_ha1: null })
  t.same(auth.rtspUsers(), [{ name: 'admin', ha1_md5: digest('md5'), ha1_sha256: null, cameras: null }])
  await login()
  t.same(auth.rtspUsers(), [{ name: 'admin', ha1_md5: digest('md5'), ha1_sha256: digest('sha256'), cameras: null }])
})
