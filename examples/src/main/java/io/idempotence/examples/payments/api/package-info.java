/** What travels between consumer and provider. */
@NullMarked
package io.idempotence.examples.payments.api;

import org.jspecify.annotations.NullMarked;
