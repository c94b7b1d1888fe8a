import * as nodeFs from 'node:fs'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Share, Space } from '../../../app/server/files/space.ts'
import { Descriptor } from '../../../app/server/files/tree.ts'

const noLinks = () => {
  throw Object.assign(new Error('no links'), { code: 'EPERM' })
}
const { Upload } = await t.mockImport<typeof import('../../../app/server/files/upload.ts')>(
  '../../../app/server/files/upload.ts',
  { 'node:fs': { ...nodeFs, linkSync: noLinks } },
)

t.test('on a disk without hard links a file gets its name too, and never over another one', async (t) => {
  const directory = t.testdir({ uploads: {}, target: { taken: 'old' } })
  const space = { grow: () => {}, release: () => {} } as unknown as Space
  const share: Share = { expected: null, written: 0, checkedAt: 0 }
  const target = await fs.open(join(directory, 'target'))
  t.teardown(() => target.close())
  const place = async (name: string) => {
    const upload = new Upload(Descriptor.open(join(directory, 'uploads'), nodeFs.constants.O_RDONLY), space, share)
    await upload.open()
    await upload.write(Buffer.from(`new ${name}`))
    await upload.seal()
    try {
      upload.place(target, name)
    } finally {
      await upload.end()
    }
  }
  await place('free')
  t.equal(await fs.readFile(join(directory, 'target/free'), 'utf8'), 'new free')
  await t.rejects(place('taken'), { code: 'CONFLICT' })
  t.equal(await fs.readFile(join(directory, 'target/taken'), 'utf8'), 'old')
  const both = await Promise.allSettled([place('race'), place('race')])
  t.same(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  t.equal(await fs.readFile(join(directory, 'target/race'), 'utf8'), 'new race')
  t.same(await fs.readdir(join(directory, 'uploads')), [])
  t.same((await fs.readdir(join(directory, 'target'))).sort(), ['free', 'race', 'taken'])
})
