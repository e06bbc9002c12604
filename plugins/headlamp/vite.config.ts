// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// Headlamp gives a plugin these modules, as properties of pluginLib. `headlamp-plugin build` has the same
// table; it isn't used because it needs the packages that package.json replaces by an empty one.
const provided: Record<string, string> = {
  react: 'pluginLib.React',
  'react/jsx-runtime': 'pluginLib.ReactJSX',
  'react-router-dom': 'pluginLib.ReactRouter',
  '@mui/material': 'pluginLib.MuiMaterial',
  '@mui/material/styles': 'pluginLib.MuiMaterial.styles',
  '@kinvolk/headlamp-plugin/lib': 'pluginLib',
  '@kinvolk/headlamp-plugin/lib/CommonComponents': 'pluginLib.CommonComponents',
};

export default defineConfig({
  plugins: [react()],
  build: {
    lib: { entry: 'src/index.tsx', name: 'main', fileName: () => 'main.js', formats: ['umd'] },
    rollupOptions: {
      external: Object.keys(provided),
      output: { interop: 'compat', globals: provided },
    },
  },
  // On a machine that is busy with builds, a look-up by role takes seconds.
  test: { include: ['src/**/*.test.{ts,tsx}'], environment: 'node', testTimeout: 60_000 },
});
