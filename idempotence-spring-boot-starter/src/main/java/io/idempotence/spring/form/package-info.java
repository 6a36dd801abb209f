/** Protection of HTML forms: one-time tokens in hidden fields, and pages for people instead of problem documents. */
@NullMarked
package io.idempotence.spring.form;

import org.jspecify.annotations.NullMarked;
