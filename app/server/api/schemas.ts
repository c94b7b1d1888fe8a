/** Schemas that several resources share. */
import { Kind, type TLiteral, type TSchema, type TUnion, type TUnsafe, Type, TypeRegistry } from '@sinclair/typebox'
import { QUALITIES } from '../cameras/index.ts'

TypeRegistry.Set('Documented', () => true)

export const closed = { additionalProperties: false } as const

export function Nullable<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()])
}

export function Enum<const V extends readonly string[]>(values: V, description = ''): TUnion<TLiteral<V[number]>[]> {
  const literals = values.map((value: V[number]) => Type.Literal(value)) as TLiteral<V[number]>[]
  return Type.Union(literals, description === '' ? {} : { description }) as TUnion<TLiteral<V[number]>[]>
}

export const CameraId = Type.Integer({ minimum: 0, maximum: 255, description: 'camera index; the active camera when absent' })
export const ImageQuality = Type.Integer({ minimum: 1, maximum: 100, default: 85 })
export const Resolution = Type.String({ maxLength: 16, description: '<width>x<height>, both even', examples: ['1280x720'] })
export const RecordingQuality = Enum(QUALITIES, 'chooses the bitrate for the resolution')
export const Success = Type.Object({ success: Type.Boolean() })
export const Page = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 100 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
}

/** The same for the API document, and anything for the validation: for bodies that their domain checks better. */
export function documented(schema: TSchema): TUnsafe<unknown> {
  return Type.Unsafe<unknown>({ ...JSON.parse(JSON.stringify(schema)), [Kind]: 'Documented' })
}
