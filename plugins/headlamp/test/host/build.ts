// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { copyFileSync, readFileSync, rmSync } from 'node:fs';
import { build, type Plugin } from 'esbuild';

interface Package {
  overrides: Record<string, string | Record<string, string>>;
}

const root = new URL('../../', import.meta.url).pathname;

// What package.json replaces by an empty package: editors, terminals and the like, which no page of the test shows.
function unused(): Plugin {
  const { overrides } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as Package;
  // One of them brings jsep, which Headlamp uses and doesn't name.
  const names = [...Object.keys(overrides['@kinvolk/headlamp-plugin'] ?? {}), 'jsep'];
  return {
    name: 'unused',
    setup(building) {
      building.onResolve({ filter: new RegExp(`^(${names.join('|')})(/.*)?$`) }, () => ({ path: 'unused', namespace: 'unused' }));
      building.onLoad({ filter: /.*/, namespace: 'unused' }, () => ({ contents: 'module.exports = {}' }));
    },
  };
}

// Headlamp asks its bundler for each language apart. English is enough here.
function english(): Plugin {
  return {
    name: 'english',
    setup(building) {
      building.onLoad({ filter: /headlamp-plugin\/lib\/i18n\/config\.js$/ }, ({ path }) => ({
        contents: readFileSync(path, 'utf8').replace('./locales/${language.toLowerCase()}/${namespace}.json?import=default', './locales/en/${namespace}.json'),
      }));
    },
  };
}

// buildHost writes the page that shows Headlamp's frontend with the built plugin to dist-host.
export async function buildHost(): Promise<string> {
  const out = `${root}dist-host`;
  rmSync(out, { recursive: true, force: true });
  await build({
    entryPoints: [`${root}test/host/host.tsx`],
    outdir: out,
    bundle: true,
    format: 'esm',
    jsx: 'automatic',
    target: 'es2022',
    loader: { '.svg': 'dataurl', '.png': 'dataurl', '.webp': 'dataurl', '.ttf': 'empty', '.woff': 'empty', '.woff2': 'empty' },
    define: { 'process.env.NODE_ENV': '"production"', 'import.meta.env': '{}', global: 'globalThis' },
    plugins: [unused(), english()],
    logLevel: 'error',
  });
  copyFileSync(`${root}test/host/index.html`, `${out}/index.html`);
  return out;
}
