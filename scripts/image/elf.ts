/** The little of an ELF file that says which shared libraries it wants: the dynamic section, and systemd's notes of what it opens at run time. */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'

export interface Wanted {
  /** Names that the dynamic loader must find. */
  readonly needed: readonly string[]
  /** Names from `.note.dlopen` that the program is worse without; merely suggested ones are left out. */
  readonly opened: readonly string[]
}

interface Section {
  readonly name: string
  readonly type: number
  readonly bytes: Buffer
  readonly link: number
}

const SHT_DYNAMIC = 6
const DT_NEEDED = 1n

/** What FILE wants, null where it is no 64-bit little-endian ELF file. */
export function wantedBy(file: string): Wanted | null {
  if (!isElf(file)) return null
  const sections = sectionsOf(readFileSync(file))
  return { needed: neededOf(sections), opened: openedOf(sections) }
}

function isElf(file: string): boolean {
  const start = Buffer.alloc(6)
  const descriptor = openSync(file, 'r')
  try {
    readSync(descriptor, start, 0, start.length, 0)
  } finally {
    closeSync(descriptor)
  }
  return start.equals(Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1]))
}

function sectionsOf(image: Buffer): Section[] {
  const offset = Number(image.readBigUInt64LE(40))
  const size = image.readUInt16LE(58)
  const count = image.readUInt16LE(60)
  const names = image.readUInt16LE(62)
  const header = (index: number) => image.subarray(offset + index * size, offset + (index + 1) * size)
  const bytes = (head: Buffer) => {
    const start = Number(head.readBigUInt64LE(24))
    return image.subarray(start, start + Number(head.readBigUInt64LE(32)))
  }
  if (count === 0) return []
  const nameTable = bytes(header(names))
  return Array.from({ length: count }, (_, index) => {
    const head = header(index)
    return {
      name: text(nameTable, head.readUInt32LE(0)),
      type: head.readUInt32LE(4),
      bytes: bytes(head),
      link: head.readUInt32LE(40),
    }
  })
}

function neededOf(sections: readonly Section[]): string[] {
  const found: string[] = []
  for (const { type, bytes, link } of sections) {
    const strings = sections[link]
    if (type !== SHT_DYNAMIC || !strings) continue
    for (let at = 0; at + 16 <= bytes.length; at += 16)
      if (bytes.readBigUInt64LE(at) === DT_NEEDED) found.push(text(strings.bytes, Number(bytes.readBigUInt64LE(at + 8))))
  }
  return found
}

/** Each note: the sizes of name and description, a type, the name, then a JSON array of features, padded to four bytes. */
function openedOf(sections: readonly Section[]): string[] {
  const found: string[] = []
  for (const { name, bytes } of sections) {
    if (name !== '.note.dlopen') continue
    for (let at = 0; at + 12 <= bytes.length; ) {
      const nameSize = bytes.readUInt32LE(at)
      const size = bytes.readUInt32LE(at + 4)
      const start = at + 12 + padded(nameSize)
      const features = JSON.parse(text(bytes.subarray(start, start + size), 0)) as { soname: string[]; priority?: string }[]
      for (const feature of features) if (feature.priority !== 'suggested') found.push(...feature.soname)
      at = start + padded(size)
    }
  }
  return found
}

function padded(size: number): number {
  return Math.ceil(size / 4) * 4
}

function text(bytes: Buffer, start: number): string {
  const end = bytes.indexOf(0, start)
  return bytes.toString('utf8', start, end < 0 ? bytes.length : end)
}
