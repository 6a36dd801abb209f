package io.idempotence.spring.actuate;

import java.util.Map;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The properties {@code idempotence.console.*}. An unknown one fails the start.
 *
 * @param enabled Whether the application serves the console page.
 * @param path Path of the page in the application, such as /idempotence, without a slash at its end.
 * @param role Role that a user needs to open the page, without the prefix ROLE_.
 * @param writes Whether the page may resolve uncertain records.
 * @param withoutSecurity Whether the page may be served without Spring Security, to everybody who can reach it.
 * @param question What a person must find out before an uncertain record is resolved.
 * @param questions Questions of single operations, by method and path in the application, such as [POST /payments/*]. They are shown instead of the general one.
 */
@ConfigurationProperties(prefix = "idempotence.console", ignoreUnknownFields = false)
record ConsoleProperties(
        @DefaultValue("false") boolean enabled,
        @DefaultValue("/idempotence") String path,
        @DefaultValue("IDEMPOTENCE_OPERATOR") String role,
        @DefaultValue("false") boolean writes,
        @DefaultValue("false") boolean withoutSecurity,

        @DefaultValue("Did the operation take effect? Look at the business data: the order, the ledger, or the payment"
                + " provider's own record.")
        String question,

        @DefaultValue Map<String, String> questions) {}
