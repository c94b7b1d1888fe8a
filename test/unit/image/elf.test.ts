import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { wantedBy } from '../../../scripts/image/elf.ts'

t.test('an executable names the libraries that it needs', async (t) => {
  const wanted = wantedBy(process.execPath)
  t.ok(wanted?.needed.includes('libc.so.6'), `${wanted?.needed}`)
  t.same(wanted?.opened, [])
})

t.test('notes of what is opened at run time: all but the merely suggested', async (t) => {
  const file = join(t.testdir(), 'program')
  const features = [
    [{ feature: 'a', priority: 'recommended', soname: ['liba.so.1', 'liba.so.0'] }],
    [{ feature: 'b', priority: 'suggested', soname: ['libb.so.1'] }],
    [{ feature: 'c', soname: ['libc-like.so.1'] }],
  ]
  writeFileSync(file, elfWithNotes(features.map((feature) => JSON.stringify(feature))))
  t.same(wantedBy(file), { needed: [], opened: ['liba.so.1', 'liba.so.0', 'libc-like.so.1'] })
})

t.test('what is no ELF file wants nothing', async (t) => {
  const folder = t.testdir({ script: '#!/bin/sh\n', empty: '' })
  t.equal(wantedBy(join(folder, 'script')), null)
  t.equal(wantedBy(join(folder, 'empty')), null)
})

/** The least file that has a section `.note.dlopen`: header, notes, names of the sections, three section headers. */
function elfWithNotes(descriptions: readonly string[]): Buffer {
  const notes = Buffer.concat(descriptions.map(note))
  const names = Buffer.from('\0.shstrtab\0.note.dlopen\0')
  const header = Buffer.alloc(64)
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1])
  header.writeBigUInt64LE(BigInt(64 + notes.length + names.length), 40)
  header.writeUInt16LE(64, 58)
  header.writeUInt16LE(3, 60)
  header.writeUInt16LE(1, 62)
  const sections = [section(0, 0, 0, 0), section(1, 3, 64 + notes.length, names.length), section(11, 7, 64, notes.length)]
  return Buffer.concat([header, notes, names, ...sections])
}

function note(description: string): Buffer {
  const text = Buffer.from(`${description}\0`)
  const head = Buffer.alloc(16)
  head.writeUInt32LE(4, 0)
  head.writeUInt32LE(text.length, 4)
  head.writeUInt32LE(0x407c0c0a, 8)
  head.write('FDO\0', 12)
  return Buffer.concat([head, text, Buffer.alloc((4 - (text.length % 4)) % 4)])
}

function section(name: number, type: number, offset: number, size: number): Buffer {
  const head = Buffer.alloc(64)
  head.writeUInt32LE(name, 0)
  head.writeUInt32LE(type, 4)
  head.writeBigUInt64LE(BigInt(offset), 24)
  head.writeBigUInt64LE(BigInt(size), 32)
  return head
}
