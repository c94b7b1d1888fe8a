/** `multipart/form-data` as it comes: fields, and the bytes of files between them, in the order of the form. */
import { setImmediate as turn } from 'node:timers/promises'
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy'
import { ApiError, InvalidRequest } from '../errors.ts'
import type { BodyStream } from './body-stream.ts'

/** What a form may carry beside its files. */
const LIMITS = { fieldNameSize: 100, fieldSize: 8192, fields: 16, files: 1, parts: 17, headerPairs: 16, headerSize: 8192 }
/** Boundaries, headers and fields around the file. */
export const FORM_OVERHEAD = 64 * 1024
/** More than one chunk of the body can hold: the parser never has to wait. */
const FILE_BUFFER = 16 * 1024 * 1024

/** `data` belongs to the file named last, and is good until the next event is asked for. */
export type FormEvent =
  | { readonly kind: 'field'; readonly name: string; readonly value: string }
  | { readonly kind: 'file'; readonly name: string; readonly filename: string }
  | { readonly kind: 'data'; readonly bytes: Uint8Array }

type Parsed = Exclude<FormEvent, { kind: 'data' }> | { readonly kind: 'stream'; readonly stream: BusboyFileStream }

export class FormBody {
  readonly #body: BodyStream | null
  readonly #contentType: string
  readonly #maxFileBytes: number
  readonly #parsed: Parsed[] = []
  #current: BusboyFileStream | null = null
  #failure: unknown = null
  #finished = false

  constructor(
    /** Null: the request has none. */
    body: BodyStream | null,
    contentType: string,
    maxFileBytes: number,
    /** Bytes of the whole body as announced; null where they were not. */
    readonly announced: number | null,
  ) {
    this.#body = body
    this.#contentType = contentType
    this.#maxFileBytes = maxFileBytes
  }

  /** All that the form holds. Throws an `ApiError` where it is none, is too large or breaks off. */
  async *events(): AsyncGenerator<FormEvent, void, void> {
    if (!/^multipart\/form-data\s*;/i.test(this.#contentType)) {
      throw new InvalidRequest('content-type', 'The body must be multipart/form-data')
    }
    if (this.#body === null) throw new InvalidRequest('body', 'A form is required')
    const busboy = this.#parser()
    for await (const chunk of this.#body) {
      await new Promise<void>((resolve) => busboy.write(chunk, () => resolve()))
      this.#check()
      yield* this.#drain()
    }
    busboy.end()
    while (!this.#finished && this.#failure === null) {
      await turn()
      yield* this.#drain()
      // Nothing comes behind: what is left is the end.
      this.#current?.resume()
    }
    this.#check()
    yield* this.#drain()
  }

  #parser(): BusboyInstance {
    let busboy: BusboyInstance
    try {
      busboy = new Busboy({
        headers: { 'content-type': this.#contentType },
        fileHwm: FILE_BUFFER,
        preservePath: true,
        limits: { ...LIMITS, fileSize: this.#maxFileBytes },
      })
    } catch {
      throw new InvalidRequest('content-type', 'The form names no boundary')
    }
    const fail = (error: unknown) => {
      this.#failure ??= error
    }
    const malformed = (why: string) => () => fail(new InvalidRequest('body', why))
    // A part may come without a name; what is thrown here would reach nobody and end the process.
    busboy.on('field', (name: string | undefined = '', value, nameCut, valueCut) => {
      if (nameCut || valueCut) fail(new InvalidRequest(`body.${name.slice(0, 100)}`, 'This field is too long'))
      else this.#parsed.push({ kind: 'field', name, value })
    })
    busboy.on('file', (name: string | undefined = '', stream, filename: string | undefined = '') => {
      stream.on('limit', () => fail(tooLargeFile(this.#maxFileBytes)))
      stream.on('error', malformed('The form breaks off'))
      this.#parsed.push({ kind: 'file', name, filename: unescaped(filename) }, { kind: 'stream', stream })
    })
    busboy.on('filesLimit', malformed('The form has more than one file'))
    busboy.on('fieldsLimit', malformed('The form has too many fields'))
    busboy.on('partsLimit', malformed('The form has too many parts'))
    busboy.on('error', malformed('The form is malformed or breaks off'))
    busboy.on('finish', () => {
      this.#finished = true
    })
    return busboy
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure
  }

  *#drain(): Generator<FormEvent, void, void> {
    for (;;) {
      const bytes = this.#current?.read() as Uint8Array | null | undefined
      if (bytes) {
        yield { kind: 'data', bytes }
        continue
      }
      const next = this.#parsed.shift()
      if (next === undefined) return
      if (next.kind === 'stream') this.#current = next.stream
      else yield next
    }
  }
}

/** Browsers write these three so, and nothing else (WHATWG HTML, multipart form data): `%` stays as it is. */
function unescaped(filename: string): string {
  return filename.replaceAll('%22', '"').replaceAll('%0D', '\r').replaceAll('%0A', '\n')
}

function tooLargeFile(limit: number): ApiError {
  return new ApiError('PAYLOAD_TOO_LARGE', `The file is larger than ${limit} bytes`, `limit ${limit} bytes`)
}
