"""HTTP only: routes, schemas, errors and their statuses."""
