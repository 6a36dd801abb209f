package io.idempotence.spring.form;

import io.idempotence.server.servlet.IdempotenceFilter;
import java.util.Collection;
import java.util.Comparator;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.boot.web.servlet.AbstractFilterRegistrationBean;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.core.Ordered;

/** The place of the form filter among the filters of the application. */
record FormFilterPlace(ListableBeanFactory beans) {
    /** Puts the form filter directly in front of the first idempotence filter, whoever registers that. */
    void give(FilterRegistrationBean<?> form) {
        form.setOrder(Ordered.LOWEST_PRECEDENCE - 1);
        form.setMatchAfter(true);
        // Without the form filter itself, which is being created.
        Collection<AbstractFilterRegistrationBean<?>> others =
                beans.<AbstractFilterRegistrationBean<?>>getBeansOfType(type()).values();
        others.stream()
                .filter(other -> other.isEnabled()
                        && other instanceof FilterRegistrationBean<?> one
                        && one.getFilter() instanceof IdempotenceFilter)
                .min(Comparator.comparing((AbstractFilterRegistrationBean<?> one) -> one.isMatchAfter())
                        .thenComparing(AbstractFilterRegistrationBean::getOrder))
                .ifPresent(first -> {
                    form.setOrder(Math.max(first.getOrder(), Ordered.HIGHEST_PRECEDENCE + 1) - 1);
                    form.setMatchAfter(first.isMatchAfter());
                });
    }

    @SuppressWarnings({"unchecked", "rawtypes"}) // A class literal has no type arguments.
    private static Class<AbstractFilterRegistrationBean<?>> type() {
        return (Class) AbstractFilterRegistrationBean.class;
    }
}
