import { writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { dayFolder, freeName, sanitiseStem, timeStem } from '../../../app/server/files/index.ts'
import { scratchFolder } from '../../support/scratch.ts'

t.test('names from the clock', async (t) => {
  t.equal(timeStem(new Date(2026, 10, 2, 3, 4, 5)), '20261102_030405')
  t.equal(dayFolder(new Date(2026, 0, 2)), '2026/01/02')
})

t.test('names from clients', async (t) => {
  t.equal(sanitiseStem('front door.mp4'), 'front_door')
  t.equal(sanitiseStem('../../etc/passwd'), 'etc_passwd')
  t.equal(sanitiseStem('Tür'), 'Tür')
  t.equal(sanitiseStem('...'), null)
  t.equal(sanitiseStem(''), null)
})

t.test('whatever the client sends, the file stays in its folder and is visible', async () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'grapheme', maxLength: 300 }),
        fc.string({ unit: fc.constantFrom('.', '/', '\\', '\0', 'a', '%', '~', '\n') }),
      ),
      (name) => {
        const stem = sanitiseStem(name)
        if (stem === null) return true
        const path = resolve('/storage', `${stem}.mp4`)
        const plain = !/[/\\\0\n]/.test(stem) && !stem.startsWith('.') && !stem.startsWith('-')
        return plain && path === `/storage/${basename(path)}` && Buffer.byteLength(`${stem}_99.mp4`) <= 255
      },
    ),
  )
})

t.test('an existing name is never taken', async (t) => {
  const folder = scratchFolder(t, 'names')
  writeFileSync(join(folder, 'a.mp4'), '')
  writeFileSync(join(folder, 'a_1.mp4'), '')
  t.equal(freeName(folder, 'a.mp4'), 'a_2.mp4')
  t.equal(freeName(folder, 'b.mp4'), 'b.mp4')
})
