// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';

interface Package {
  overrides: Record<string, string | Record<string, string>>;
}

const root = new URL('../../', import.meta.url);
const { overrides } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as Package;
const unused = Object.keys(overrides['@kinvolk/headlamp-plugin'] ?? {});

// What package.json replaces has nothing in it: editors, terminals and the like, which no page of the test shows.
function withoutUnused(): Plugin {
  return {
    name: 'without-unused',
    enforce: 'pre',
    resolveId: source =>
      unused.some(name => source === name || source.startsWith(`${name}/`))
        ? { id: '\0unused', syntheticNamedExports: 'nothing' }
        : null,
    load: id => (id === '\0unused' ? 'export const nothing = new Proxy({}, { get: () => undefined }); export default nothing;' : null),
  };
}

export default defineConfig({
  root: new URL('.', import.meta.url).pathname,
  plugins: [withoutUnused()],
  define: { 'process.env': '{}', global: 'globalThis' },
  build: { outDir: '../../dist-host', emptyOutDir: true, minify: false, modulePreload: false, reportCompressedSize: false, chunkSizeWarningLimit: 1e6 },
});
