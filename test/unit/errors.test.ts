import t from 'tap'
import { ApiError, ERROR_STATUS, InvalidRequest } from '../../app/server/errors.ts'

t.test('an error carries the status of its code', async (t) => {
  t.equal(new ApiError('CAMERA_NOT_CONNECTED', 'x').status, 503)
  t.equal(new InvalidRequest('body.fps', 'must be an integer').status, 400)
  t.equal(new InvalidRequest('body.fps', 'must be an integer').details, 'body.fps')
  for (const status of Object.values(ERROR_STATUS)) t.ok(status >= 400 && status < 600)
})
