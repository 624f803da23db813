-- The public key of the worker's link, in hexadecimal digits; null for workers that never had one.

ALTER TABLE workers ADD COLUMN link_key TEXT;
