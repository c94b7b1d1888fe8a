/**
 * Loaded before the built server where a test makes many accounts: passwords are hashed with the least that bcrypt takes, because what
 * it costs is not what is tested. The server knows nothing of it, and asks for the cost that it ships with or fails here.
 */
const { basename } = require('node:path')
const Module = require('node:module')

const SHIPPED_ROUNDS = 12
const QUICK_ROUNDS = 4

const load = Module._extensions['.node']
Module._extensions['.node'] = (module, file) => {
  load(module, file)
  if (basename(file) !== 'bcrypt.node') return
  const { hash, ...others } = module.exports
  module.exports = {
    ...others,
    hash: (password, rounds, ...rest) => {
      if (rounds !== SHIPPED_ROUNDS) throw new Error(`passwords are hashed with ${rounds} rounds`)
      return hash(password, QUICK_ROUNDS, ...rest)
    },
  }
}
