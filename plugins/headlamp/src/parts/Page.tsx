// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { CommonComponents, K8s } from '@kinvolk/headlamp-plugin/lib';
import { Box, Link, Typography } from '@mui/material';
import type { ReactNode } from 'react';
import { Link as RouterLink } from 'react-router-dom';

export const paths = {
  quotas: '/shared-quotas',
  quota: '/shared-quotas/:name',
  views: '/quota-views',
  fit: '/quota-fit',
};

// useClusterName is the cluster that is looked at.
export function useClusterName(): string {
  return K8s.useCluster() ?? '';
}

// To is a link to a page of this plugin.
export function To({ path, children }: { path: string; children: ReactNode }) {
  return (
    <Link component={RouterLink} to={`/c/${encodeURIComponent(useClusterName())}${path}`} sx={{ color: 'text.primary', textDecoration: 'underline' }}>
      {children}
    </Link>
  );
}

// Page is what a route shows.
export function Page({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Box data-shared-quota sx={{ minWidth: 0 }}>
      <CommonComponents.SectionBox title={title} headerProps={{ headerStyle: 'main' }}>
        {children}
      </CommonComponents.SectionBox>
    </Box>
  );
}

// Part is a section of a page. Its title is smaller than that of the page; Headlamp's own are nearly as large.
export function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Box component="section" aria-label={title} sx={{ minWidth: 0, mt: 4 }}>
      <Typography component="h2" variant="h5" sx={{ fontWeight: 600, mb: 1, overflowWrap: 'anywhere' }}>
        {title}
      </Typography>
      {children}
    </Box>
  );
}

// AddedPart is a section that the plugin adds to a page of Headlamp's own, and looks like the others there.
export function AddedPart({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Box data-shared-quota component="section" aria-label={title} sx={{ minWidth: 0 }}>
      <CommonComponents.SectionBox title={title}>{children}</CommonComponents.SectionBox>
    </Box>
  );
}
