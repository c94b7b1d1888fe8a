/** What holds for cameras for which nobody has said otherwise. */
import { type Static, Type } from '@sinclair/typebox'

export const Camera = Type.Object({
  default_resolution: Type.String({
    pattern: '^[1-9]\\d{1,4}x[1-9]\\d{1,4}$',
    default: '1280x720',
    description: '<width>x<height>, both even; of cameras whose mode stands neither in the options nor in their own settings',
  }),
  default_framerate: Type.Integer({
    minimum: 5,
    maximum: 60,
    default: 30,
    description: 'frames a second, of the same cameras',
  }),
  auto_exposure: Type.Boolean({
    default: true,
    description: 'the camera chooses its exposure; false fixes it, which needs a camera that can',
  }),
  pre_roll: Type.Boolean({
    default: false,
    description:
      'keeps `recordingBufferSize` bytes of the past in memory for recordings that ask for it; the encoder then always runs',
  }),
})
export type Camera = Static<typeof Camera>
