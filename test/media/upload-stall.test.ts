import { Type } from '@sinclair/typebox'
import t from 'tap'
import { route } from '../../app/server/http/index.ts'
import { FORM_TYPE, form } from '../integration/files/harness.ts'
import { serve } from '../integration/http/harness.ts'

/** Longer than uWS leaves a connection alone that nothing comes from. */
const HANGS_MS = 13_500

t.test('a disk that hangs for a while does not cost the upload', async (t) => {
  let received = 0
  const slow = route({
    method: 'POST',
    path: '/slow',
    access: 'public',
    rate: 'upload',
    tag: 'test',
    summary: 'test',
    upload: { form: Type.Object({}), maxBytes: () => 64 * 1024 * 1024 },
    response: Type.Unknown(),
    handler: async ({ body }) => {
      let hung = false
      for await (const event of body.events()) {
        if (event.kind !== 'data') continue
        received += event.bytes.length
        if (!hung) await new Promise((resolve) => setTimeout(resolve, HANGS_MS))
        hung = true
      }
      return { received }
    },
  })
  const { client } = await serve(t, { routes: [slow] })
  const body = form([['file', Buffer.alloc(20 * 1024 * 1024), 'a']])
  const answer = await client.json('/slow', { method: 'POST', body, headers: { 'content-type': FORM_TYPE } })
  t.same(answer.body, { received: 20 * 1024 * 1024 })
})
