/** The sections of the configuration, and how a value becomes one of them. */
import type { TObject } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { InvalidRequest } from '../errors.ts'
import { Camera } from './sections/camera.ts'
import { Logging } from './sections/logging.ts'
import { Network } from './sections/network.ts'
import { Security } from './sections/security.ts'
import { Storage } from './sections/storage.ts'

/** Of the stored form. A field that is missing or does not fit takes its default, so that most changes of a schema need no other number. */
export const CONFIG_VERSION = 1

export const SECTIONS = { network: Network, camera: Camera, storage: Storage, security: Security, logging: Logging }

export type Section = keyof typeof SECTIONS
export interface SectionValues {
  readonly network: Readonly<Network>
  readonly camera: Readonly<Camera>
  readonly storage: Readonly<Storage>
  readonly security: Readonly<Security>
  readonly logging: Readonly<Logging>
}
export type PartialSections = { readonly [S in Section]?: Partial<SectionValues[S]> }

export const SECTION_NAMES = Object.keys(SECTIONS) as Section[]

const checks = new Map<Section, TypeCheck<TObject>>()

export function isSection(name: string): name is Section {
  return Object.hasOwn(SECTIONS, name)
}

export function defaultsOf<S extends Section>(section: S): SectionValues[S] {
  return Value.Default(SECTIONS[section], {}) as SectionValues[S]
}

/** Every field of the schema and no other, each in its range; `where` names the value in the error. */
export function checkSection<S extends Section>(section: S, value: unknown, where: string = section): SectionValues[S] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new InvalidRequest(where, 'Expected an object')
  const unknown = Object.keys(value).find((key) => !Object.hasOwn(SECTIONS[section].properties, key))
  if (unknown !== undefined) throw new InvalidRequest(`${where}.${unknown}`, `The section ${section} has no field ${unknown}`)
  const check = compiled(section)
  if (check.Check(value)) return value as SectionValues[S]
  const error = check.Errors(value).First()
  const field = `${where}${(error?.path ?? '').replaceAll('/', '.')}`
  throw new InvalidRequest(field, error ? explain(error) : 'Invalid')
}

/** What is stored, made to fit this release: `dropped` names the fields that could not be kept. */
export function fitSection<S extends Section>(
  section: S,
  stored: unknown,
  defaults: SectionValues[S],
): { value: SectionValues[S]; dropped: string[] } {
  const value: Record<string, unknown> = { ...defaults }
  const dropped: string[] = []
  for (const [key, own] of Object.entries(typeof stored === 'object' && stored !== null ? stored : {})) {
    const { properties } = SECTIONS[section]
    const schema = Object.hasOwn(properties, key) ? properties[key as never] : undefined
    if (schema !== undefined && Value.Check(schema, own)) value[key] = own
    else dropped.push(key)
  }
  return { value: value as unknown as SectionValues[S], dropped }
}

function compiled(section: Section): TypeCheck<TObject> {
  let check = checks.get(section)
  if (!check) {
    check = TypeCompiler.Compile(SECTIONS[section] as TObject)
    checks.set(section, check)
  }
  return check
}

function explain({ schema, message, type }: ValueError): string {
  const variants: unknown[] = Array.isArray(schema.anyOf) ? schema.anyOf.map((variant: { const?: unknown }) => variant.const) : []
  if (variants.length > 0 && !variants.includes(undefined)) return `Expected one of ${variants.join(', ')}`
  if (type === ValueErrorType.ObjectRequiredProperty) return 'This value is required'
  if (type === ValueErrorType.StringPattern && typeof schema.description === 'string') return `Expected ${schema.description}`
  return message
}
