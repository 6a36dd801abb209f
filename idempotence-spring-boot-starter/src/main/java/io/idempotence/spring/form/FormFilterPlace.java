package io.idempotence.spring.form;

import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.spring.internal.FilterRegistrations;
import io.idempotence.spring.internal.SetUpException;
import java.util.Collection;
import java.util.Comparator;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.boot.web.servlet.AbstractFilterRegistrationBean;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.core.Ordered;

/** The place of the form filter among the filters of the application. */
record FormFilterPlace(ListableBeanFactory beans) {
    /** Puts the form filter directly in front of the first idempotence filter, however that is registered. */
    void give(FilterRegistrationBean<?> form) {
        form.setOrder(Ordered.LOWEST_PRECEDENCE - 1);
        form.setMatchAfter(true);
        // Without the form filter itself, which is being created.
        Collection<AbstractFilterRegistrationBean<?>> others =
                FilterRegistrations.in(beans).values();
        others.stream()
                .filter(other -> other.isEnabled()
                        && other instanceof FilterRegistrationBean<?> one
                        && one.getFilter() instanceof IdempotenceFilter)
                .min(Comparator.comparing((AbstractFilterRegistrationBean<?> one) -> one.isMatchAfter())
                        .thenComparing(AbstractFilterRegistrationBean::getOrder))
                .ifPresent(first -> {
                    form.setOrder(Math.max(first.getOrder(), Ordered.HIGHEST_PRECEDENCE + 1) - 1);
                    form.setMatchAfter(first.isMatchAfter());
                    others.stream()
                            .filter(FilterRegistrations::isSecurity)
                            .forEach(security -> checkBehind(security, first));
                });
    }

    /** If the idempotence filter is in front of Spring Security itself, somebody else says so. */
    private static void checkBehind(
            AbstractFilterRegistrationBean<?> security, AbstractFilterRegistrationBean<?> first) {
        if (!first.isMatchAfter() && first.getOrder() == security.getOrder() + 1) {
            throw SetUpException.ofProperty(
                    "idempotence.server.filter-order",
                    first.getOrder(),
                    "the filter for form tokens is directly in front of the idempotence filter, and would have the order of"
                            + " Spring Security's: tokens could be made and checked without a user",
                    "Set idempotence.server.filter-order to at least " + (security.getOrder() + 2)
                            + ", or set idempotence.form.enabled=false.",
                    null);
        }
    }
}
