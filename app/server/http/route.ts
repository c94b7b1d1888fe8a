/**
 * The route table's vocabulary. An HTTP operation is data; routing, validation, authorisation, rate limits, the `/api/v1` form and
 * the OpenAPI document are all made from it. A handler takes typed input and returns a value (or one of the replies below) or throws
 * an `ApiError`; it never sees the HTTP library.
 */
import type { FileHandle } from 'node:fs/promises'
import type { TObject, TSchema } from '@sinclair/typebox'
import { type Caller, type CredentialSource, ROLES, type Role } from '../caller.ts'
import type { ErrorCode } from '../errors.ts'
import type { FormBody } from './multipart.ts'

export { type Caller, type CredentialSource, ROLES, type Role }

/** `public` needs no credentials. */
export type Access = Role | 'public'

/** Which budget of requests per second and address an operation draws on. */
export type RateClass = 'image' | 'file' | 'api' | 'upload'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface HandlerInput<P, Q, B> {
  readonly params: P
  readonly query: Q
  readonly body: B
  /** Null on public routes without (valid) credentials. */
  readonly caller: Caller | null
  /** The client's address as text. */
  readonly address: string
  /** The address at the other end of the connection: the client's own, or that of a proxy in front of it. */
  readonly peer: string
  /** True over TLS. */
  readonly secure: boolean
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal
}

/** A JSON answer with headers of its own. */
export class JsonReply {
  constructor(
    readonly value: unknown,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {}
}

/** Bytes from memory, such as a JPEG. */
export class BytesReply {
  constructor(
    readonly bytes: Uint8Array,
    readonly type: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {}
}

/** A file from disk: streamed with backpressure, with Range and conditional requests. */
export class FileReply {
  constructor(
    /** Absolute path, or what opens the file; the domain that made it answers for its containment. The reply closes what it has opened. */
    readonly source: string | (() => Promise<FileHandle>),
    readonly type: string,
    readonly options: {
      /** Name for `Content-Disposition`; `inline` unless `attachment` is set. */
      readonly filename?: string
      readonly attachment?: boolean
    } = {},
  ) {}
}

/** What the OpenAPI document says of an answer that is no JSON. */
export interface BinaryResponse {
  readonly binary: string
  /** The answer is a `FileReply`: in ranges and conditional, and bounded in number. */
  readonly file?: true
}

/** A form with a file of any length, which the handler takes as it comes instead of a body. */
export interface Upload {
  /** For the document; the handler itself checks what comes. */
  readonly form: TObject
  /** Of the file. */
  readonly maxBytes: () => number
}

export interface Route {
  readonly method: Method
  /** As in OpenAPI: `/api/recordings/{id}`. `{name}` matches one segment, `{name+}` at the end all that is left. */
  readonly path: string
  readonly access: Access
  readonly rate: RateClass
  /** OpenAPI tag. */
  readonly tag: string
  readonly summary: string
  readonly description?: string
  readonly params?: TObject
  readonly query?: TObject
  readonly body?: TSchema
  /** An absent body counts as `{}`. */
  readonly bodyOptional?: boolean
  /** Of the body, where the usual bound is too small. */
  readonly bodyBytes?: number
  /** Instead of `body`. */
  readonly upload?: Upload
  readonly response: TSchema | BinaryResponse
  /** Codes beyond those that every route may answer (400, 401, 403, 429, 500). */
  readonly errors?: readonly ErrorCode[]
  /** Answers although the factory password is still in force. */
  readonly beforePasswordChange?: boolean
  /** The kind of share link that opens this operation too; none otherwise. A link to a stream opens its still. */
  readonly share?: 'still' | 'recording'
  readonly handler: (input: HandlerInput<never, never, never>) => unknown
}

type Shape<S> = S extends { static: infer V } ? V : Record<string, never>

/** Types a route's handler by its schemas; the table itself holds plain `Route`s. */
export function route<
  P extends TObject | undefined = undefined,
  Q extends TObject | undefined = undefined,
  B extends TSchema | undefined = undefined,
  U extends Upload | undefined = undefined,
>(
  spec: Omit<Route, 'params' | 'query' | 'body' | 'upload' | 'handler'> & {
    readonly params?: P
    readonly query?: Q
    readonly body?: B
    readonly upload?: U
    readonly handler: (input: HandlerInput<Shape<P>, Shape<Q>, U extends Upload ? FormBody : Shape<B>>) => unknown
  },
): Route {
  return spec as unknown as Route
}

export function roleAllows(role: Role, needed: Access): boolean {
  return needed === 'public' || ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** Null: no credentials at all. Throws `InvalidCredentials` for wrong ones. */
export type Authenticate = (source: CredentialSource) => Promise<Caller | null> | Caller | null
