/**
 * Backups of the settings: taken at one moment, kept as files of their own, and restored whole or not at all. Everything in a file is
 * checked before anything changes; then it is written in one transaction and made to act.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Requester } from '../auth/index.ts'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { type Configuration, fitSection, isSection, SECTION_NAMES, type SectionValues } from '../config/index.ts'
import { ApiError, Conflict, errorText, InvalidRequest, NotFound } from '../errors.ts'
import type { Logger } from '../log.ts'
import { prepareFolder, writeFileAtomic } from '../platform/index.ts'
import { inTurns } from '../turns.ts'
import { VERSION } from '../version.ts'
import { type BackupDocument, openContent, readDocument, writeDocument } from './document.ts'
import type { Part, Prepared } from './part.ts'

export const BACKUP_NAME = '^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$'
const MAX_BACKUPS = 50
export const MAX_BACKUP_BYTES = 1024 ** 2
const SUFFIX = '.json'

export interface StoredBackup {
  readonly name: string
  /** Bytes. */
  readonly size: number
  /** ISO 8601. */
  readonly created: string
  readonly includes_secrets: boolean
  readonly server_version: string
}

export interface RestoreReport {
  readonly changes: readonly string[]
  readonly skipped: readonly string[]
}

export interface CreateOptions {
  readonly name: string | undefined
  /** With secrets; null: without. */
  readonly passphrase: string | null
}

export interface RestoreOptions {
  readonly name: string
  readonly passphrase: string | undefined
  readonly dryRun: boolean
  readonly by: Requester
  /** Also before a recording may begin. */
  readonly last?: (() => Promise<void>) | undefined
}

interface Described {
  readonly backup: StoredBackup
  /** Of the file that was read. */
  readonly version: string
}

export class Backups implements Component {
  private readonly described = new Map<string, Described>()

  constructor(
    private readonly folder: string,
    private readonly configuration: Configuration,
    private readonly parts: readonly Part[],
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly now: () => Date = () => new Date(),
  ) {}

  start(): void {
    prepareFolder(this.folder)
    // Of a crash in the middle of writing.
    for (const name of readdirSync(this.folder)) if (name.endsWith('.tmp')) rmSync(join(this.folder, name), { force: true })
  }

  stop(): void {}

  async create({ name = this.freeName(), passphrase }: CreateOptions): Promise<StoredBackup> {
    const created = this.now().toISOString()
    const head = { server_version: VERSION, created, includes_secrets: passphrase !== null }
    const document = await writeDocument(head, this.collect(passphrase !== null), passphrase)
    return this.keep(name, document, 'backup_created')
  }

  /** Keeps a file that came from outside, when it is whole. */
  import(name: string, value: unknown): StoredBackup {
    return this.keep(name, readDocument(value), 'backup_imported')
  }

  async list(): Promise<StoredBackup[]> {
    const found = new Map<string, Described>()
    const names = this.names()
    for await (const name of inTurns(names)) {
      const described = this.describe(name)
      if (described) found.set(name, described)
    }
    for (const name of this.described.keys()) if (!found.has(name)) this.described.delete(name)
    for (const [name, described] of found) this.described.set(name, described)
    return [...found.values()].map(({ backup }) => backup).sort((a, b) => (a.created < b.created ? 1 : -1))
  }

  /** Host path of an existing one. */
  file(name: string): string {
    if (!this.names().includes(name)) throw new NotFound(`backup ${name}`)
    return this.path(name)
  }

  remove(name: string): void {
    rmSync(this.file(name))
    this.bus.publish('config', 'backup_removed', { name })
  }

  /** Checks everything; acts unless `dryRun`, and then does `last`. */
  async restore({ name, passphrase, dryRun, by, last = async () => {} }: RestoreOptions): Promise<RestoreReport> {
    const document = readDocument(parseFile(this.file(name)))
    const content = await openContent(document, passphrase)
    const sections = this.sectionsOf(content.configuration)
    this.configuration.checkAll(sections)
    const prepared: [name: string, part: Prepared][] = []
    for (const part of this.parts) {
      const value = content[part.name]
      if (value !== undefined) prepared.push([part.name, await part.prepare(value, document.includes_secrets, by)])
    }
    const known = ['configuration', ...this.parts.map((part) => part.name)]
    const unknown = Object.keys(content).find((key) => !known.includes(key))
    if (unknown !== undefined) throw new InvalidRequest(`backup.content.${unknown}`, 'This key is not known')
    const report = {
      changes: [...this.sectionChanges(sections), ...prepared.flatMap(([, { changes }]) => changes)],
      skipped: prepared.flatMap(([, { skipped }]) => skipped),
    }
    if (dryRun) return report
    await this.configuration.held(async () => {
      await this.configuration.assign(sections, () => {
        for (const [, part] of prepared) part.write()
      })
      this.bus.publish('config', 'backup_restored', { name, changes: report.changes.length })
      await this.act(prepared)
      await last()
    })
    return report
  }

  /** All is stored: one part that fails keeps none of the others back. */
  private async act(prepared: readonly [name: string, part: Prepared][]): Promise<void> {
    const failed: string[] = []
    for (const [name, part] of prepared) {
      try {
        await part.act()
      } catch (error) {
        failed.push(name)
        this.log.error({ part: name, error: errorText(error) }, 'restored and stored, but does not act')
      }
    }
    if (failed.length === 0) return
    const why = 'The backup is restored and stored, but some of it acts only after a restart of the server'
    throw new ApiError('INTERNAL_ERROR', why, failed.join(', '))
  }

  /** Without a pause between the first and the last read: nobody writes meanwhile. */
  private collect(secrets: boolean): Record<string, unknown> {
    const parts = this.parts.map((part) => [part.name, part.collect(secrets)] as const)
    return { configuration: this.configuration.all(), ...Object.fromEntries(parts) }
  }

  private sectionsOf(value: unknown): Partial<SectionValues> {
    if (value === undefined) return {}
    demandObject(value, 'backup.content.configuration')
    const sections: Record<string, unknown> = {}
    for (const [name, fields] of Object.entries(value)) {
      const where = `backup.content.configuration.${name}`
      if (!isSection(name)) throw new InvalidRequest(where, 'This section is not known')
      demandObject(fields, where)
      const { value: fitting, dropped } = fitSection(name, fields, this.configuration.get(name))
      if (dropped.length > 0) throw new InvalidRequest(`${where}.${dropped[0]}`, 'This field is not known or out of its range')
      sections[name] = fitting
    }
    return sections as Partial<SectionValues>
  }

  private sectionChanges(sections: Partial<SectionValues>): string[] {
    return SECTION_NAMES.flatMap((section) => {
      const now = this.configuration.get(section) as Record<string, unknown>
      const fields = Object.entries(sections[section] ?? {})
      return fields.filter(([key, v]) => JSON.stringify(v) !== JSON.stringify(now[key])).map(([key]) => `${section}.${key}`)
    })
  }

  private keep(name: string, document: BackupDocument, event: string): StoredBackup {
    const names = this.names()
    if (names.includes(name)) throw new Conflict('There is a backup of this name already', name)
    if (names.length >= MAX_BACKUPS)
      throw new Conflict(`There are ${MAX_BACKUPS} backups already; remove some`, `limit ${MAX_BACKUPS}`)
    const text = `${JSON.stringify(document)}\n`
    if (text.length > MAX_BACKUP_BYTES)
      throw new ApiError(
        'PAYLOAD_TOO_LARGE',
        `The backup is larger than ${MAX_BACKUP_BYTES} bytes`,
        `limit ${MAX_BACKUP_BYTES} bytes`,
      )
    try {
      writeFileAtomic(this.path(name), text, 0o600)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      throw new ApiError('INSUFFICIENT_STORAGE', 'The disk is full')
    }
    this.bus.publish('config', event, { name, includes_secrets: document.includes_secrets })
    const { created, includes_secrets, server_version } = document
    return { name, size: Buffer.byteLength(text), created, includes_secrets, server_version }
  }

  /** Parsed and summed only when the file is another one than last time. */
  private describe(name: string): Described | null {
    try {
      const { size, ino, mtimeNs } = statSync(this.path(name), { bigint: true })
      const version = `${ino} ${size} ${mtimeNs}`
      const known = this.described.get(name)
      if (known?.version === version) return known
      const { created, includes_secrets, server_version } = readDocument(parseFile(this.path(name)))
      return { version, backup: { name, size: Number(size), created, includes_secrets, server_version } }
    } catch (error) {
      if (!existsSync(this.path(name))) return null
      this.log.warn({ name, error: errorText(error) }, 'a backup cannot be read')
      return null
    }
  }

  private names(): string[] {
    return readdirSync(this.folder)
      .filter((file) => file.endsWith(SUFFIX))
      .map((file) => file.slice(0, -SUFFIX.length))
  }

  private path(name: string): string {
    return join(this.folder, `${name}${SUFFIX}`)
  }

  private freeName(): string {
    const stamp = this.now().toISOString().replace(/[-:]/g, '').replace('T', '_').slice(0, 15)
    const names = this.names()
    const candidates = [`settings_${stamp}`, ...Array.from({ length: MAX_BACKUPS }, (_, i) => `settings_${stamp}_${i + 2}`)]
    return candidates.find((name) => !names.includes(name)) ?? `settings_${stamp}`
  }
}

function demandObject(value: unknown, field: string): asserts value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new InvalidRequest(field, 'Expected an object')
}

function parseFile(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    throw new ApiError('INVALID_FORMAT', 'The backup is damaged: it is no JSON', 'backup')
  }
}
