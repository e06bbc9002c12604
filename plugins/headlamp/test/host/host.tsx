// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// The npm package of Headlamp has its frontend but for App.js, which puts the parts together. This does that for the
// test: Headlamp's own store, themes, sidebar, routes and pages, and the plugin as it is built.

// Headlamp's modules import each other in circles, and are evaluated in the right order if this is the first.
import Sidebar from '@kinvolk/headlamp-plugin/lib/components/Sidebar/index.js';
import '@kinvolk/headlamp-plugin/lib/plugin/index.js';
import RouteSwitcher from '@kinvolk/headlamp-plugin/lib/components/App/RouteSwitcher.js';
import { setTheme, useCurrentAppTheme } from '@kinvolk/headlamp-plugin/lib/components/App/themeSlice.js';
import { queryClient } from '@kinvolk/headlamp-plugin/lib/lib/queryClient.js';
import { createMuiTheme } from '@kinvolk/headlamp-plugin/lib/lib/themes.js';
import { setConfig } from '@kinvolk/headlamp-plugin/lib/redux/configSlice.js';
import store from '@kinvolk/headlamp-plugin/lib/redux/stores/store.js';
import { Box, CssBaseline } from '@mui/material';
import { StyledEngineProvider, ThemeProvider } from '@mui/material/styles';
import { QueryClientProvider } from '@tanstack/react-query';
import { SnackbarProvider } from 'notistack';
import { useMemo } from 'react';
import { createRoot } from 'react-dom/client';
import { Provider } from 'react-redux';
import { BrowserRouter } from 'react-router-dom';

function Layout() {
  const current = useCurrentAppTheme();
  const theme = useMemo(() => createMuiTheme(current), [current]);
  return (
    <ThemeProvider theme={theme}>
      <CssBaseline />
      <Box sx={{ display: 'flex', height: '100vh', bgcolor: 'background.default', color: 'text.primary' }}>
        <Sidebar />
        <Box component="main" sx={{ flex: 1, minWidth: 0, p: 2, overflow: 'auto' }}>
          <RouteSwitcher requiresToken={() => false} />
        </Box>
      </Box>
    </ThemeProvider>
  );
}

// The plugin must be there before the routes are drawn. It is run as Headlamp runs it: as a script of its own.
function run(source: string) {
  new Function(source)();
}

const cluster = { name: 'main', auth_type: '', meta_data: {} };
store.dispatch(setConfig({ clusters: { main: cluster } }));
// The test changes the theme, as Headlamp's settings do.
window.addEventListener('theme', event => store.dispatch(setTheme((event as CustomEvent<string>).detail)));
const root = document.getElementById('root');
const built = await fetch('/plugin/main.js');
if (!root || !built.ok) {
  throw new Error(`no root, or no plugin: ${built.status}`);
}
run(await built.text());
createRoot(root).render(
  <Provider store={store}>
    <QueryClientProvider client={queryClient}>
      <StyledEngineProvider injectFirst>
        <SnackbarProvider>
          <BrowserRouter>
            <Layout />
          </BrowserRouter>
        </SnackbarProvider>
      </StyledEngineProvider>
    </QueryClientProvider>
  </Provider>
);
