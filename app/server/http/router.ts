/**
 * Finds the route of a method and path. Every `/api/x` is entered as `/api/v1/x` too; where the table has a `/api/v1` route of its
 * own, that one counts. Literal segments win over parameters, parameters over the wildcard `{name+}`.
 */
import { InvalidRequest } from '../errors.ts'
import type { Method, Route } from './route.ts'
import { splitPath } from './target.ts'

export interface Endpoint {
  readonly route: Route
  /** Names of the parameters, in the order of the path. */
  readonly names: readonly string[]
}

export interface Match {
  /** Null where the path exists but not for this method. */
  readonly endpoint: Endpoint | null
  /** Decoded values of the parameters by name. */
  readonly params: Readonly<Record<string, string>>
  /** Methods of the table that the path has. */
  readonly methods: readonly Method[]
}

interface Node {
  readonly literals: Map<string, Node>
  param: Node | null
  wildcard: Endpoints | null
  here: Endpoints | null
}

type Endpoints = Map<Method, Endpoint>

interface Candidate {
  readonly endpoints: Endpoints
  readonly values: readonly string[]
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({})

export class Router {
  readonly #root = newNode()
  /** Paths without parameters, found without a walk. */
  readonly #exact = new Map<string, Map<Method, Match>>()

  constructor(routes: readonly Route[]) {
    for (const route of routes) this.#add(route.path, route, true)
    for (const route of routes) {
      if (route.path.startsWith('/api/') && !isVersioned(route.path)) {
        this.#add(`/api/v1/${route.path.slice('/api/'.length)}`, route, false)
      }
    }
  }

  /** Null where no route has the path at all. Throws `InvalidRequest` for a malformed path. */
  find(method: string, path: string): Match | null {
    const known = this.#exact.get(path)?.get(method as Method)
    if (known !== undefined) return known

    const segments = splitPath(path)
    const candidates: Candidate[] = []
    collect(this.#root, segments, 0, [], candidates)
    if (candidates.length === 0) return null

    for (const { endpoints, values } of candidates) {
      const endpoint = endpoints.get(method as Method)
      if (endpoint !== undefined) return { endpoint, params: bind(endpoint, values), methods: methodsOf(candidates) }
    }
    return { endpoint: null, params: NO_PARAMS, methods: methodsOf(candidates) }
  }

  #add(path: string, route: Route, own: boolean): void {
    const names: string[] = []
    let node = this.#root
    let endpoints: Endpoints | null = null
    for (const part of path.slice(1).split('/')) {
      if (part.startsWith('{')) {
        names.push(part.replace(/[{}+]/g, ''))
        if (part.endsWith('+}')) {
          node.wildcard ??= new Map()
          endpoints = node.wildcard
          break
        }
        node.param ??= newNode()
        node = node.param
      } else {
        const next: Node = node.literals.get(part) ?? newNode()
        node.literals.set(part, next)
        node = next
      }
    }
    if (endpoints === null) {
      node.here ??= new Map()
      endpoints = node.here
    }
    if (endpoints.has(route.method)) {
      if (own) throw new Error(`The route table has ${route.method} ${path} twice`)
      return
    }
    const endpoint = { route, names }
    endpoints.set(route.method, endpoint)
    if (names.length === 0) this.#remember(path, endpoint)
  }

  #remember(path: string, endpoint: Endpoint): void {
    const { method } = endpoint.route
    const matches = this.#exact.get(path) ?? new Map<Method, Match>()
    matches.set(method, { endpoint, params: NO_PARAMS, methods: [method] })
    this.#exact.set(path, matches)
  }
}

export function isVersioned(path: string): boolean {
  return path.startsWith('/api/v1/') || path === '/api/v1'
}

/** Value of `Allow`: what the table has, HEAD with every GET, and OPTIONS. */
export function allowed(methods: readonly Method[]): string {
  return [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ')
}

function newNode(): Node {
  return { literals: new Map(), param: null, wildcard: null, here: null }
}

/** All endpoints that the segments lead to, the most literal first. */
function collect(node: Node, segments: readonly string[], at: number, values: readonly string[], found: Candidate[]): void {
  const segment = segments[at]
  if (segment === undefined) {
    if (node.here !== null) found.push({ endpoints: node.here, values })
    return
  }
  const literal = node.literals.get(segment)
  if (literal !== undefined) collect(literal, segments, at + 1, values, found)
  if (node.param !== null && segment !== '') collect(node.param, segments, at + 1, [...values, segment], found)
  if (node.wildcard !== null && segment !== '') {
    found.push({ endpoints: node.wildcard, values: [...values, segments.slice(at).join('/')] })
  }
}

function bind(endpoint: Endpoint, values: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {}
  endpoint.names.forEach((name, index) => {
    const value = values[index] ?? ''
    if (endpoint.route.path.includes(`{${name}+}`)) checkRest(name, value)
    else if (value.includes('/')) throw new InvalidRequest(`params.${name}`, `${name} contains a slash`)
    params[name] = value
  })
  return params
}

/** An encoded slash in a wildcard is a slash; it must not bring back what `splitPath` has refused. */
function checkRest(name: string, value: string): void {
  if (value.split('/').some((part) => part === '' || part === '.' || part === '..')) {
    throw new InvalidRequest(`params.${name}`, `${name} has an empty or dot segment`)
  }
}

function methodsOf(candidates: readonly Candidate[]): Method[] {
  return [...new Set(candidates.flatMap(({ endpoints }) => [...endpoints.keys()]))]
}
