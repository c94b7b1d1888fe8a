/** The native addons of the server: which package ships which file for which platform, and the name that the bundle knows it by. */

export interface Target {
  readonly platform: string
  /** As Node names it: `x64`, `arm64`. */
  readonly arch: string
  /** Node's module ABI (`process.versions.modules`); only uWebSockets.js has a build for each. */
  readonly abi: string
}

export interface Addon {
  readonly name: string
  readonly package: string
  readonly file: string
  /** Whose addon it is: the package with the licences, which that of one platform lacks. */
  readonly owner: string
}

export function addonsOf({ platform, arch, abi }: Target): Addon[] {
  return [
    { name: 'uws.node', package: 'uWebSockets.js', file: `uws_${platform}_${arch}_${abi}.node`, owner: 'uWebSockets.js' },
    { name: 'lmdb.node', package: `@lmdb/lmdb-${platform}-${arch}`, file: 'node.napi.glibc.node', owner: 'lmdb' },
    {
      name: 'bcrypt.node',
      package: `@node-rs/bcrypt-${platform}-${arch}-gnu`,
      file: `bcrypt.${platform}-${arch}-gnu.node`,
      owner: '@node-rs/bcrypt',
    },
  ]
}

/** What the sources import, and the addon that stands behind it. lmdb asks a loader package for its own. */
export const ADDON_IMPORTS: Readonly<Record<string, { readonly addon: string; readonly throughLoader: boolean }>> = {
  'uWebSockets.js': { addon: 'uws.node', throughLoader: false },
  '@node-rs/bcrypt': { addon: 'bcrypt.node', throughLoader: false },
  'node-gyp-build-optional-packages': { addon: 'lmdb.node', throughLoader: true },
}
