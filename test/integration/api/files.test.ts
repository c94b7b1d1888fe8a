import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Json, login, until } from '../../support/api.ts'
import { startQuickServer } from '../../support/server.ts'

t.test('recordings and files: one storage, one catalogue', async (t) => {
  const server = await startQuickServer(t, { args: ['--rate-limits', 'off'] })
  const api = await login(server)
  const host = (path: string) => join(server.dataDir, path.replace('/media/data', 'media'))
  const record = async (filename: string) => {
    t.match(await api.post('/api/recording/start', { filename }), { status: 200 })
    const { body } = await api.get('/api/recordings')
    return String((body.recordings as unknown as Json[]).find((row) => String(row.filename).startsWith(filename))?.path)
  }
  const upload = async (path: string, filename: string) => {
    const body = new FormData()
    body.set('file', new Blob(['mine']), filename)
    body.set('path', path)
    body.set('overwrite', 'true')
    const response = await fetch(`${server.base}/upload`, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${api.token}` },
    })
    return { status: response.status, code: ((await response.json()) as { error?: { code: string } }).error?.code }
  }

  const path = await record('first')
  const folder = path.slice(0, path.lastIndexOf('/'))
  const name = path.slice(folder.length + 1)
  t.match(await api.delete(`/files${path}`), { status: 409, body: { error: { code: 'RECORDING_IN_PROGRESS' } } })
  t.match(await api.delete('/files/recordings?recursive=true'), {
    status: 409,
    body: { error: { code: 'RECORDING_IN_PROGRESS' } },
  })
  t.match(await upload(folder, name), { status: 409, code: 'RECORDING_IN_PROGRESS' })
  t.match(await api.post('/api/recording/stop', {}), { status: 200 })
  t.match(await upload(folder, name), { status: 409, code: 'CONFLICT' })

  const listing = await api.get(`/api/files?directory=${folder}&filter=mp4`)
  t.match(listing.body, { file_count: 1, files: [{ name, path, mime_type: 'video/mp4' }] })
  const asFile = await api.bytes(`/download${path}`)
  const asRecording = await api.bytes('/api/recordings/1')
  t.equal(asFile.bytes.length, Number(listing.body.total_size))
  t.ok(asFile.bytes.equals(asRecording.bytes))

  t.match(await api.delete(`/files${path}`), { status: 200 })
  t.notOk(existsSync(host(path)))
  t.match(await api.get('/api/recordings'), { body: { total: 0 } })
  t.match(await api.get('/api/recordings/1'), { status: 404 })

  await record('second')
  t.match(await api.post('/api/recording/stop', {}), { status: 200 })
  t.match(await upload('recordings/notes', 'a.txt'), { status: 200 })
  t.match(await api.delete('/files/recordings?recursive=true'), { status: 200 })
  t.match(await api.get('/api/recordings'), { body: { total: 0 } })
  t.notOk(readdirSync(host('/media/data')).includes('recordings'))
  await record('third')
  t.match(await api.post('/api/recording/stop', {}), { status: 200 }, 'the folders come back by themselves')

  const audit = await until(
    () => api.get('/api/audit?action=file'),
    ({ body }) => Number(body.total) >= 3,
    'the audit log',
  )
  t.match(JSON.stringify(audit.body), /file\.uploaded/)
  t.match(JSON.stringify(audit.body), /file\.deleted/)
})

t.test('what a crash has left of an upload is gone after the start', async (t) => {
  const first = await startQuickServer(t)
  mkdirSync(join(first.dataDir, 'media/.uploads/odd'), { recursive: true })
  await first.kill()
  await startQuickServer(t, { dataDir: first.dataDir })
  t.same(readdirSync(join(first.dataDir, 'media/.uploads')), [])
})
