/** The network between consumer and provider, which loses requests and responses. */
@NullMarked
package io.idempotence.examples.payments.network;

import org.jspecify.annotations.NullMarked;
