/** What comes from outside (an index, RAUC, the system service) is believed only as far as it makes sense. */
import fc from 'fast-check'
import t from 'tap'
import { httpUrl } from '../../../app/server/updates/address.ts'
import { parseBundleInfo, reasonOf } from '../../../app/server/updates/bundle.ts'
import { parseFailure } from '../../../app/server/updates/failures.ts'
import { type IndexEntry, parseIndex } from '../../../app/server/updates/index-file.ts'
import { uploadName } from '../../../app/server/updates/shelf.ts'
import { interpretSlots } from '../../../app/server/updates/slots.ts'

const BASE = 'https://updates.example/cameras/index.json'
const ENTRY = {
  id: 'release-1.3.0',
  version: '1.3.0',
  compatible: 'camera-server-test',
  url: 'bundles/1.3.0.raucb',
  sha256: 'a'.repeat(64),
  size_bytes: 1000,
}
const parsed = (...updates: unknown[]) => parseIndex(JSON.stringify({ updates }), BASE)

t.test('an index with an address relative to it', async (t) => {
  const { entries, ignored } = parsed({ ...ENTRY, notes: 'better', released: '2026-11-01', later_field: 1 })
  const url = 'https://updates.example/cameras/bundles/1.3.0.raucb'
  t.same(entries, [{ ...ENTRY, url, notes: 'better', released: '2026-11-01' }])
  t.equal(ignored, 0)
})

t.test('entries that are malformed are left out, and counted', async (t) => {
  const wrong: Partial<Record<keyof IndexEntry, unknown>>[] = [
    { id: 'upload:1' },
    { id: '' },
    { version: '' },
    { compatible: null },
    { sha256: 'A'.repeat(64) },
    { sha256: 'a'.repeat(63) },
    { size_bytes: 0 },
    { size_bytes: 1.5 },
    { size_bytes: 2 ** 40 },
    { url: 'file:///etc/passwd' },
    { url: 'ftp://updates.example/a' },
    { url: 'https://user:word@updates.example/a' },
    { url: 'http://' },
    { notes: 7 },
  ]
  const { entries, ignored } = parsed(...wrong.map((change) => ({ ...ENTRY, ...change })), null, 'text', ENTRY, ENTRY)
  t.equal(entries.length, 1)
  t.equal(ignored, wrong.length + 3, 'the second of an id too')
})

t.test('what is no index says so', async (t) => {
  for (const text of ['', 'null', '[]', '{}', '{"updates": {}}', '<html>'])
    t.throws(() => parseIndex(text, BASE), { code: 'SERVICE_UNAVAILABLE' }, text)
})

t.test('whatever an index holds, its entries are well-formed', async () => {
  const json = fc.jsonValue()
  const field = fc.constantFrom(...Object.keys(ENTRY))
  const nearly = fc.tuple(field, json).map(([name, value]) => ({ ...ENTRY, [name]: value }))
  fc.assert(
    fc.property(fc.array(fc.oneof(json, nearly), { maxLength: 150 }), (updates) => {
      const { entries, ignored } = parsed(...updates)
      const fine = entries.every(({ id, url, sha256, size_bytes }) => {
        return /^[\w.-]{1,64}$/.test(id) && /^https?:\/\//.test(url) && /^[0-9a-f]{64}$/.test(sha256) && size_bytes > 0
      })
      return fine && entries.length <= 100 && entries.length + ignored === updates.length
    }),
  )
})

t.test('addresses of HTTP alone', async (t) => {
  t.equal(httpUrl('https://updates.example'), 'https://updates.example/')
  for (const url of ['', 'updates.example', 'javascript:1', 'file:///x', 'https://a:b@c/']) t.equal(httpUrl(url), null, url)
})

t.test('what RAUC says of a bundle, in both of its forms', async (t) => {
  const fields = { compatible: 'camera', version: '1.0.0', description: '', build: 'today' }
  const info = { compatible: 'camera', version: '1.0.0', description: null, build: 'today' }
  t.same(parseBundleInfo(JSON.stringify({ ...fields, hooks: [], images: [] })), info)
  t.same(parseBundleInfo(JSON.stringify({ update: fields, bundle: { format: 'verity' } })), info)
  for (const text of ['', '{}', '[]', 'null', '{"compatible": 1}', '{"update": "x"}']) t.equal(parseBundleInfo(text), null, text)
  t.equal(parseBundleInfo(JSON.stringify({ ...fields, version: 'x'.repeat(999) }))?.version?.length, 256)
  t.equal(
    reasonOf('rauc-Message: 1: Reading\nsignature verification failed: expired\n\n'),
    'signature verification failed: expired',
  )
  t.match(reasonOf('rauc-Message: 1: Reading\n'), /without a word/)
})

const STATUS = {
  compatible: 'camera-server-test',
  variant: '',
  booted: 'A',
  boot_primary: 'rootfs.1',
  slots: [
    {
      'rootfs.1': {
        class: 'rootfs',
        device: '/dev/disk/by-partlabel/rootfs-b',
        type: 'raw',
        bootname: 'B',
        state: 'inactive',
        parent: null,
        mountpoint: null,
        boot_status: 'good',
        slot_status: {
          bundle: { compatible: 'camera-server-test', version: '1.3.0' },
          installed: { timestamp: '2026-11-01T10:00:00Z', count: 2 },
          status: 'ok',
        },
      },
    },
    { 'rootfs.0': { class: 'rootfs', bootname: 'A', state: 'booted', boot_status: 'good', slot_status: {} } },
    { 'data.0': { class: 'data', state: 'active' } },
  ],
}

t.test('both slots, as RAUC and GRUB tell', async (t) => {
  const lines = [JSON.stringify(STATUS), 'env ORDER=B,A A_OK=1 A_TRY=0 B_OK=1 B_TRY=2 machine_id=x=y']
  t.same(interpretSlots(lines, '1.2.3'), {
    booted: 'A',
    primary: 'B',
    slots: [
      { name: 'A', state: 'booted', boot_status: 'good', version: '1.2.3', installed: null, tries_left: 3 },
      { name: 'B', state: 'inactive', boot_status: 'good', version: '1.3.0', installed: '2026-11-01T10:00:00Z', tries_left: 1 },
    ],
    pending: { slot: 'B', version: '1.3.0', state: 'waits_for_restart' },
  })
})

t.test('the release that came with the disk is known once it has run', async (t) => {
  const running = { ...STATUS, booted: 'rootfs.1', boot_primary: 'rootfs.1' }
  const versions = (line: string) => interpretSlots([JSON.stringify(running), line], '1.3.0').slots.map((slot) => slot.version)
  t.same(versions('releases B=1.3.0 A=1.2.3'), ['1.2.3', '1.3.0'])
  t.same(versions('releases B=9.9.9'), [null, '1.3.0'])
})

t.test('an update that is under way, waits, or is tried', async (t) => {
  const pending = (line: string, booted = 'A') =>
    interpretSlots([JSON.stringify({ ...STATUS, booted, boot_primary: booted }), 'env x=y', line], null).pending
  t.equal(pending(''), null)
  t.same(pending('pending slot=B version=1.3.0 state=installing'), { slot: 'B', version: '1.3.0', state: 'installing' })
  t.same(pending('pending slot=B version=1.3.0 state=installed'), { slot: 'B', version: '1.3.0', state: 'waits_for_restart' })
  t.same(pending('pending slot=B version= state=installed', 'B'), { slot: 'B', version: null, state: 'on_trial' })
})

t.test('U-Boot counts what is left; a slot that is not fit has nothing left', async (t) => {
  const tries = (env: string) => interpretSlots([JSON.stringify(STATUS), `env ${env}`], null).slots.map((slot) => slot.tries_left)
  t.same(tries('BOOT_ORDER=A B BOOT_A_LEFT=3 BOOT_B_LEFT=0'), [3, 0])
  t.same(tries('A_OK=1 A_TRY=9 B_OK=0 B_TRY=0'), [0, 0])
  t.same(tries('A_TRY=many'), [null, null])
})

t.test('the booted slot may also be named as the device, or only by its state', async (t) => {
  t.equal(interpretSlots([JSON.stringify({ ...STATUS, booted: 'rootfs.0' })], null).booted, 'A')
  t.equal(interpretSlots([JSON.stringify({ ...STATUS, booted: undefined })], null).booted, 'A')
})

t.test('an answer that makes no sense is no slot', async (t) => {
  const none = { booted: null, primary: null, slots: [], pending: null }
  for (const lines of [[], [''], ['{'], ['{}'], ['{"slots": 7}'], ['{"slots": [null, 7, {"a": null}, {"b": {"bootname": ""}}]}']])
    t.same(interpretSlots(lines, '1.0.0'), none, lines.join())
  fc.assert(
    fc.property(fc.json(), (json) => {
      interpretSlots([json], null)
      return true
    }),
  )
})

t.test('a failed update, with what is missing or wrong left out', async (t) => {
  const failure = {
    slot: 'B',
    version: '1.3.0',
    installed: '2026-11-01T10:00:00Z',
    detected: '2026-11-01T10:09:00Z',
    attempts: 3,
    stage: 'server',
    reason: 'no frames',
    log: ['one', 'two'],
  }
  t.same(parseFailure(JSON.stringify(failure)), failure)
  const bare = { version: null, installed: null, detected: null, attempts: null, stage: null, reason: null, log: [] }
  t.same(parseFailure('{"slot": "B", "stage": "moon", "log": "text", "attempts": "3"}'), { slot: 'B', ...bare })
  const long = { ...failure, log: [...Array.from({ length: 99 }, (_, i) => `line ${i}`), 'x'.repeat(5000), 7] }
  const log = parseFailure(JSON.stringify(long))?.log ?? []
  t.equal(log.length, 50)
  t.equal(log.at(-1)?.length, 1000)
  for (const line of ['', 'null', '{}', '[]', '{"slot": 1}']) t.equal(parseFailure(line), null, line)
})

t.test('names of uploaded bundles', async (t) => {
  t.equal(uploadName('camera 1.3.0.raucb'), 'camera_1.3.0.raucb')
  t.equal(uploadName('../../etc/x.raucb'), 'etc_x.raucb')
  t.equal(uploadName('Überschrift.raucb'), 'berschrift.raucb')
  for (const name of ['', '.raucb', 'a.zip', 'raucb', '...raucb'])
    t.throws(() => uploadName(name), { code: 'INVALID_REQUEST' }, name)
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        return /^[A-Za-z0-9][A-Za-z0-9._-]*\.raucb$/.test(uploadName(`${text}.raucb`))
      } catch (error) {
        return (error as { code?: string }).code === 'INVALID_REQUEST'
      }
    }),
  )
})
