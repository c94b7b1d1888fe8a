/** The configuration: read, replaced, merged by section; its history and the way back. */
import { type TObject, type TProperties, Type } from '@sinclair/typebox'
import {
  type ConfigChange,
  type Configuration,
  isSection,
  SECTION_NAMES,
  SECTIONS,
  type Section,
  type SectionValues,
} from '../config/index.ts'
import { InvalidRequest, NotFound, PermissionDenied } from '../errors.ts'
import { type Caller, type Route, roleAllows, route } from '../http/index.ts'
import { required } from './access.ts'
import { closed, documented, Enum, Nullable, Page } from './schemas.ts'

/** Who may change a section; reading the second kind is for operators too. */
const ADMIN_SECTIONS: ReadonlySet<Section> = new Set(['network', 'security'])
const READ_BY_OPERATORS: ReadonlySet<Section> = new Set(['security'])

const Name = Type.Object({
  section: Type.String({ maxLength: 64, description: SECTION_NAMES.join(', '), examples: ['storage'] }),
})
const Values = Type.Object(eachSection((schema) => schema))
/** Documented in full; checked by the domain, which knows what the section in the path wants. */
const Given = documented(Type.Object(eachSection((schema) => Type.Partial(schema))))
const Change = Type.Object({
  id: Type.Integer(),
  section: Enum(SECTION_NAMES),
  timestamp: Type.String(),
  username: Nullable(Type.String({ description: 'null: the device itself' })),
  address: Nullable(Type.String()),
  before: Type.Object({}, { additionalProperties: true }),
  after: Type.Object({}, { additionalProperties: true }),
  undoes: Nullable(Type.Integer({ description: 'the change that this one has taken back' })),
  undone_by: Nullable(Type.Integer({ description: 'the change that has taken this one back' })),
})

export function configRoutes(configuration: Configuration): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/config',
      access: 'viewer',
      rate: 'api',
      tag: 'Configuration',
      summary: 'All sections in force, keyed by name; `security` for operators',
      response: Values,
      handler: ({ caller }) => {
        const shown = SECTION_NAMES.filter((section) => mayRead(caller, section))
        return Object.fromEntries(shown.map((section) => [section, configuration.get(section)]))
      },
    }),
    route({
      method: 'GET',
      path: '/api/config/history',
      access: 'operator',
      rate: 'api',
      tag: 'Configuration',
      summary: 'The last 200 changes, newest first: who, from where, what before and after',
      query: Type.Object(Page, closed),
      response: Type.Object({
        changes: Type.Array(Change),
        total: Type.Integer(),
        limit: Type.Integer(),
        offset: Type.Integer(),
      }),
      handler: ({ query }) => {
        const { limit = 100, offset = 0 } = query
        return { ...configuration.history(limit, offset), limit, offset }
      },
    }),
    route({
      method: 'POST',
      path: '/api/config/undo',
      access: 'operator',
      rate: 'api',
      tag: 'Configuration',
      summary: 'Take back the last change',
      description:
        'The section returns to what it was before the newest change that stands; the next undo takes back the one before that. An undo is ' +
        'itself in the history, and is not taken back by another: change the section again instead. CONFLICT when no change is left.',
      body: Type.Object(
        { section: Type.Optional(Enum(SECTION_NAMES, 'the last change of this section; of any when absent')) },
        closed,
      ),
      bodyOptional: true,
      response: Values,
      errors: ['CONFLICT', 'RECORDING_IN_PROGRESS', 'UNSUPPORTED_SETTING'],
      handler: async ({ body, caller }) => {
        const change: ConfigChange = await configuration.undo(body.section, (section) => checkWrite(caller, section))
        return { [change.section]: configuration.get(change.section) }
      },
    }),
    route({
      method: 'GET',
      path: '/api/config/{section}',
      access: 'viewer',
      rate: 'api',
      tag: 'Configuration',
      summary: 'One section in force, keyed by its name; `security` for operators',
      params: Name,
      response: Values,
      errors: ['NOT_FOUND'],
      handler: ({ params, caller }) => {
        const section = sectionOf(params.section)
        if (!mayRead(caller, section)) throw new PermissionDenied('operator')
        return { [section]: configuration.get(section) }
      },
    }),
    change('PUT', 'Replace a section: fields that are not sent return to their defaults', (section, fields) =>
      configuration.replace(section, fields),
    ),
    change('PATCH', 'Change fields of a section, and keep the others', (section, fields) => configuration.merge(section, fields)),
  ]
}

function change(
  method: 'PUT' | 'PATCH',
  summary: string,
  act: (section: Section, fields: unknown) => Promise<SectionValues[Section]>,
): Route {
  return route({
    method,
    path: '/api/config/{section}',
    access: 'operator',
    rate: 'api',
    tag: 'Configuration',
    summary,
    description:
      'The body is an object with the name of the section as its one key. It acts at once, and is refused during a recording. ' +
      '`network` and `security` are for admins. The answer is the section in force.',
    params: Name,
    body: Given,
    response: Values,
    errors: ['NOT_FOUND', 'RECORDING_IN_PROGRESS', 'INVALID_RESOLUTION', 'UNSUPPORTED_SETTING', 'SERVICE_UNAVAILABLE'],
    handler: async ({ params, body, caller }) => {
      const section = sectionOf(params.section)
      checkWrite(caller, section)
      return { [section]: await act(section, fieldsOf(section, body)) }
    },
  })
}

function sectionOf(name: string): Section {
  if (!isSection(name)) throw new NotFound(`section ${name}`)
  return name
}

function mayRead(caller: Caller | null, section: Section): boolean {
  return !READ_BY_OPERATORS.has(section) || roleAllows(required(caller).role, 'operator')
}

function checkWrite(caller: Caller | null, section: Section): void {
  if (ADMIN_SECTIONS.has(section) && required(caller).role !== 'admin') throw new PermissionDenied('admin')
}

function fieldsOf(section: Section, body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new InvalidRequest('body', 'Expected an object')
  const surplus = Object.keys(body).find((key) => key !== section)
  if (surplus !== undefined) throw new InvalidRequest(`body.${surplus}`, `The only key here is ${section}`)
  if (!Object.hasOwn(body, section)) throw new InvalidRequest(`body.${section}`, 'This value is required')
  return (body as Record<string, unknown>)[section]
}

function eachSection(of: (schema: TObject) => TObject): TProperties {
  return Object.fromEntries(SECTION_NAMES.map((name) => [name, Type.Optional(of(SECTIONS[name] as TObject))]))
}
